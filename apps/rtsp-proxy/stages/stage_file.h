// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A stage as its file describes it: a header in YAML, and launch text. docs/pipelines.md says what
// stands in it.

#include <glib.h>

#include "stages/stage_param.h"

typedef enum {
  STAGE_VIDEO = 1 << 0,
  STAGE_AUDIO = 1 << 1,
  STAGE_ANY = STAGE_VIDEO | STAGE_AUDIO,
} StageMedia;

typedef enum {
  STAGE_NOTHING, // takes nothing: it is a source
  STAGE_RTP,
  STAGE_RAW,
} StageFormat;

// NULL-terminated.
extern const gchar *const stage_formats[]; // by StageFormat
extern const gchar *const stage_media[];   // by StageMedia - 1
const gchar *stage_media_name (StageMedia media);

typedef struct {
  gchar *name;      // as RTP calls it, H264
  GPtrArray *texts; // of launch text; the first whose elements exist is taken
} StageCodec;

typedef struct {
  gchar *name;
  gchar *file;
  gchar *summary;
  StageMedia media;
  StageFormat takes;
  StageFormat gives;
  gboolean native;   // the proxy's own: no text
  gchar *codec;      // of the RTP that it gives; NULL: as it came
  GPtrArray *codecs; // of StageCodec: what it takes; empty: all
  GPtrArray *params; // of StageParam, by name
  gchar *text;
  gchar *sum; // of all that the file says
} StageFile;

// Empty: what is read into it is its file (stage_parse.h).
StageFile *stage_file_new (const gchar *name, const gchar *file);
void stage_file_free (StageFile *self);

StageParam *stage_file_find_param (const StageFile *self, const gchar *name);
const StageCodec *stage_file_find_codec (const StageFile *self, const gchar *name);

// NULL, or what is wrong with a launch text of this stage; `*offset` is the place. `nested`: it is
// put into another.
gchar *stage_file_check_text (
    const StageFile *self, const gchar *text, gboolean nested, gsize *offset);
