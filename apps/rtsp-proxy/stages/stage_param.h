// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A parameter of a stage: its type and range, and the conversion of values to one spelling.

#include <glib.h>

typedef enum {
  STAGE_PARAM_SIZE,     // 640x360
  STAGE_PARAM_BITRATE,  // 600k, 0.6M
  STAGE_PARAM_DURATION, // 500ms, 2s
  STAGE_PARAM_INTEGER,
  STAGE_PARAM_NUMBER,
  STAGE_PARAM_CHOICE,
  STAGE_PARAM_TEXT,
  STAGE_PARAM_FILE, // an absolute path
  STAGE_PARAM_TIME, // 2026-12-24T20:00:00Z
} StageParamType;

typedef struct {
  gchar *name;
  gchar *text; // inserted for {name}; NULL: the choice's name
} StageChoice;

typedef struct {
  gchar *name;
  StageParamType type;
  gchar *unit; // for --list-stages; NULL: none
  gchar *help; // for --list-stages; NULL: none
  // Checked and as written; NULL: none.
  gchar *min;
  gchar *max;
  gchar *default_text;
  GPtrArray *choices; // of StageChoice
} StageParam;

StageParam *stage_param_new (const gchar *name);
void stage_param_free (StageParam *self);

// The names of the types, by StageParamType; NULL-terminated.
extern const gchar *const stage_param_types[];

// Checks a value. Returns NULL and sets `*value` to its normal spelling (in bit/s, ms, pixels or
// UTC), or returns an error message. The caller owns both.
gchar *stage_param_check (const StageParam *self, const gchar *text, gchar **value);

// Reports whether `value`, in normal spelling, is the default.
gboolean stage_param_is_default (const StageParam *self, const gchar *value);

// Returns `value`, in normal spelling, in the largest whole unit: 600k, 2s. The caller owns the
// result.
gchar *stage_param_dup_shown (const StageParam *self, const gchar *value);

// Reports whether a URL may set the parameter. Text and files are those of the operator.
gboolean stage_param_is_for_urls (const StageParam *self);

const StageChoice *stage_param_find_choice (const StageParam *self, const gchar *name);

// Returns the text for {name} (`form` is NULL) or {name.form} in launch text, or NULL if there is
// no such form. `value` is in normal spelling. The caller owns the result.
gchar *stage_param_dup_form (const StageParam *self, const gchar *value, const gchar *form);

// Returns the placeholders of a parameter: "{x.width}, {x.height}". The caller owns the result.
gchar *stage_param_dup_forms (const StageParam *self);

// Returns the range: "from 32k to 50M", "one of openh264, x264"; NULL if there is none. The caller
// owns the result.
gchar *stage_param_dup_range (const StageParam *self);
