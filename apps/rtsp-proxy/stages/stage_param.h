// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A stage's parameter: what its values may be, and the one spelling that each of them has inside.

#include <glib.h>

typedef enum {
  STAGE_PARAM_SIZE,     // 640x360
  STAGE_PARAM_BITRATE,  // 600k, 0.6M
  STAGE_PARAM_DURATION, // 500ms, 2s
  STAGE_PARAM_INTEGER,
  STAGE_PARAM_NUMBER,
  STAGE_PARAM_CHOICE,
  STAGE_PARAM_TEXT, // never becomes part of a launch line
} StageParamType;

typedef struct {
  gchar *name;
  gchar *text; // what {name} becomes; NULL: the choice's name
} StageChoice;

typedef struct {
  gchar *name;
  StageParamType type;
  gchar *unit; // for people
  gchar *help;
  // As written, checked; NULL where there is none.
  gchar *min;
  gchar *max;
  gchar *default_text;
  GPtrArray *choices; // of StageChoice
} StageParam;

StageParam *stage_param_new (const gchar *name);
void stage_param_free (StageParam *self);

// NULL-terminated; in the order of the enumeration.
extern const gchar *const stage_param_types[];

// NULL, and `*value` is the value's one spelling (bits, milliseconds, ...); or what is wrong.
gchar *stage_param_check (const StageParam *self, const gchar *text, gchar **value);

// Of such a value: is it what the parameter has where nothing is said? And as people write it:
// 600k, 2s; to be freed.
gboolean stage_param_is_default (const StageParam *self, const gchar *value);
gchar *stage_param_dup_shown (const StageParam *self, const gchar *value);

const StageChoice *stage_param_find_choice (const StageParam *self, const gchar *name);

// What stands for {name} (`form` is NULL) or {name.form} in a launch line, or NULL if there is no
// such form. `value` is one that stage_param_check() gave.
gchar *stage_param_dup_form (const StageParam *self, const gchar *value, const gchar *form);

// The forms of a type: "{x.width}, {x.height}".
gchar *stage_param_dup_forms (const StageParam *self);

// "from 32k to 50M", "one of openh264, x264"; NULL where everything goes.
gchar *stage_param_dup_range (const StageParam *self);
