// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A stage file: a YAML header and launch text. docs/pipelines.md describes the format.

#include <glib.h>

#include "stages/stage_param.h"

typedef enum {
  STAGE_VIDEO = 1 << 0,
  STAGE_AUDIO = 1 << 1,
  STAGE_ANY = STAGE_VIDEO | STAGE_AUDIO,
} StageMedia;

typedef enum {
  STAGE_NOTHING, // the stage is a source
  STAGE_RTP,
  STAGE_RAW,
} StageFormat;

// NULL-terminated.
extern const gchar *const stage_formats[]; // by StageFormat
extern const gchar *const stage_media[];   // by StageMedia - 1
const gchar *stage_media_name (StageMedia media);

#define STAGE_INPUTS_MAX 4

typedef struct {
  gchar *name;      // the encoding name of RTP, such as H264
  GPtrArray *texts; // launch texts; the first one whose elements exist is used
} StageCodec;

typedef struct {
  gchar *property; // ELEMENT.PROPERTY or ELEMENT.PAD::PROPERTY
  gdouble from, to;
} StageFade;

typedef struct {
  gchar *name;
  gchar *file;
  gchar *summary;
  StageMedia media;
  StageFormat takes;
  StageFormat gives;
  guint inputs;      // the most mounts whose media the stage takes; 0: only its own mount's
  gboolean native;   // built into the proxy; `text` is empty
  gchar *codec;      // of the RTP that the stage gives; NULL: unchanged
  GPtrArray *codecs; // of StageCodec: the codecs that the stage takes; empty: all
  GPtrArray *params; // of StageParam, sorted by name
  // Of StageFade: what changes at the time of the parameter `at`, for as long as `time` says.
  GPtrArray *fades;
  gchar *text; // launch text
  gchar *sum;  // SHA-256 of the file
  GStrv paths; // that the file names; its workers may read them
} StageFile;

// Makes an empty stage file; stage_file_parse() fills it.
StageFile *stage_file_new (const gchar *name, const gchar *file);
void stage_file_free (StageFile *self);

StageParam *stage_file_find_param (const StageFile *self, const gchar *name);
const StageCodec *stage_file_find_codec (const StageFile *self, const gchar *name);

// Checks the placeholders in a launch text of this stage. `nested`: the text is inserted into
// another. Returns NULL, or an error message that the caller owns, and sets `*offset` to its place.
gchar *stage_file_check_text (
    const StageFile *self, const gchar *text, gboolean nested, gsize *offset);
