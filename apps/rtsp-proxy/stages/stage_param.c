// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stages/stage_param.h"

#include "stages/stage_text.h"

#include <math.h>
#include <string.h>

#define MAX_NUMBER 32 // characters
#define MAX_TEXT 4096
#define FRAME_RATE 30 // for {x.frames}; the real frame rate is not known yet

const gchar *const stage_param_types[] = { "size", "bitrate", "duration", "integer", "number",
  "choice", "text", "file", "time", NULL };

typedef struct {
  gdouble number; // or the width
  gdouble height;
} Quantity;

typedef struct {
  const gchar *suffix;
  gdouble scale;
} Scale;

static const Scale bitrate_scales[] = { { "", 1 }, { "k", 1e3 }, { "K", 1e3 }, { "M", 1e6 },
  { NULL } };
static const Scale duration_scales[] = { { "ms", 1 }, { "s", 1e3 }, { "m", 60e3 }, { "h", 3600e3 },
  { NULL } };
static const Scale no_scales[] = { { "", 1 }, { NULL } };

static void
choice_free (gpointer data)
{
  StageChoice *choice = data;

  g_free (choice->name);
  g_free (choice->text);
  g_free (choice);
}

StageParam *
stage_param_new (const gchar *name)
{
  StageParam *self = g_new0 (StageParam, 1);

  self->name = g_strdup (name);
  self->choices = g_ptr_array_new_with_free_func (choice_free);
  return self;
}

void
stage_param_free (StageParam *self)
{
  g_free (self->name);
  g_free (self->unit);
  g_free (self->help);
  g_free (self->min);
  g_free (self->max);
  g_free (self->default_text);
  g_ptr_array_unref (self->choices);
  g_free (self);
}

/* Numbers: digits and at most one point, in any locale; no exponents, no hexadecimal */

static gboolean
read_scaled (const gchar *text, const Scale *scales, gdouble *number)
{
  const gchar *at = text + (*text == '-');
  gsize digits = strspn (at, "0123456789");

  if (digits == 0 || strlen (text) > MAX_NUMBER)
    return FALSE;
  at += digits;
  if (*at == '.') {
    digits = strspn (++at, "0123456789");
    if (digits == 0)
      return FALSE;
    at += digits;
  }
  for (; scales->suffix; scales++) {
    if (g_str_equal (at, scales->suffix)) {
      *number = g_ascii_strtod (text, NULL) * scales->scale;
      return TRUE;
    }
  }
  return FALSE;
}

static gboolean
read_whole (const gchar *text, gsize len, gdouble *number)
{
  gsize digits = strspn (text, "0123456789");

  if (digits == 0 || digits != len || len > 9)
    return FALSE;
  *number = g_ascii_strtod (text, NULL);
  return TRUE;
}

// Width and height must be even: pictures with subsampled colours cannot have odd sizes.
static gboolean
read_size (const gchar *text, Quantity *out)
{
  const gchar *x = strchr (text, 'x');

  return x && read_whole (text, (gsize) (x - text), &out->number)
         && read_whole (x + 1, strlen (x + 1), &out->height) && fmod (out->number, 2) == 0
         && fmod (out->height, 2) == 0;
}

static gboolean
read_quantity (StageParamType type, const gchar *text, Quantity *out)
{
  *out = (Quantity) { 0 };
  switch (type) {
    case STAGE_PARAM_SIZE:
      return read_size (text, out);
    case STAGE_PARAM_BITRATE:
    case STAGE_PARAM_DURATION:
      if (!read_scaled (
              text, type == STAGE_PARAM_BITRATE ? bitrate_scales : duration_scales, &out->number))
        return FALSE;
      out->number = round (out->number); // 0.0006M is 600
      return out->number >= 0 && out->number <= 1e15;
    case STAGE_PARAM_INTEGER:
      return read_scaled (text, no_scales, &out->number) && out->number == trunc (out->number)
             && fabs (out->number) <= 1e15;
    case STAGE_PARAM_NUMBER:
      return read_scaled (text, no_scales, &out->number);
    default:
      return FALSE;
  }
}

static gchar *
dup_quantity (StageParamType type, const Quantity *quantity)
{
  gchar number[G_ASCII_DTOSTR_BUF_SIZE];

  if (type == STAGE_PARAM_SIZE)
    return g_strdup_printf ("%.0fx%.0f", quantity->number, quantity->height);
  // Twelve digits print 0.1 as 0.1. Adding 0 turns -0 into 0.
  return g_strdup (g_ascii_formatd (
      number, sizeof number, type == STAGE_PARAM_NUMBER ? "%.12g" : "%.0f", quantity->number + 0.));
}

static gboolean
is_within (const StageParam *self, const Quantity *quantity)
{
  Quantity end;

  if (self->min && read_quantity (self->type, self->min, &end)
      && (quantity->number < end.number || quantity->height < end.height))
    return FALSE;
  if (self->max && read_quantity (self->type, self->max, &end)
      && (quantity->number > end.number || quantity->height > end.height))
    return FALSE;
  return TRUE;
}

static gchar *
dup_choices (const StageParam *self)
{
  GString *all = g_string_new (NULL);

  for (guint i = 0; i < self->choices->len; i++) {
    const StageChoice *choice = g_ptr_array_index (self->choices, i);

    g_string_append_printf (all, "%s%s", i ? ", " : "", choice->name);
  }
  return g_string_free (all, FALSE);
}

const StageChoice *
stage_param_find_choice (const StageParam *self, const gchar *name)
{
  for (guint i = 0; i < self->choices->len; i++) {
    const StageChoice *choice = g_ptr_array_index (self->choices, i);

    if (g_str_equal (choice->name, name))
      return choice;
  }
  return NULL;
}

gchar *
stage_param_dup_range (const StageParam *self)
{
  gchar *choices, *range;

  if (self->type == STAGE_PARAM_CHOICE) {
    choices = dup_choices (self);
    range = g_strdup_printf ("one of %s", choices);
    g_free (choices);
    return range;
  }
  if (self->min && self->max)
    return g_strdup_printf ("from %s to %s", self->min, self->max);
  if (self->min)
    return g_strdup_printf ("from %s", self->min);
  return self->max ? g_strdup_printf ("up to %s", self->max) : NULL;
}

// Returns the message for a wrong value.
static gchar *
dup_wrong (const StageParam *self, const gchar *text)
{
  gchar *range = stage_param_dup_range (self);
  gchar *shown = g_str_is_ascii (text) ? g_strndup (text, 40) : g_strdup ("…");
  gchar *wrong;

  if (self->type == STAGE_PARAM_CHOICE)
    wrong = g_strdup_printf ("\"%s\" is not %s", shown, range);
  else
    wrong = g_strdup_printf ("\"%s\" is not %s %s%s%s%s%s", shown,
        self->type == STAGE_PARAM_INTEGER ? "an" : "a", stage_param_types[self->type],
        range ? " " : "", range ? range : "", self->default_text ? "; the default is " : "",
        self->default_text ? self->default_text : "");
  g_free (shown);
  g_free (range);
  return wrong;
}

static gchar *
check_time (const gchar *text, gchar **value)
{
  GTimeZone *utc = g_time_zone_new_utc ();
  GDateTime *time = g_date_time_new_from_iso8601 (text, utc), *there;

  if (time) {
    there = g_date_time_to_utc (time);
    *value = g_date_time_format_iso8601 (there);
    g_date_time_unref (there);
    g_date_time_unref (time);
  }
  g_time_zone_unref (utc);
  return time ? NULL
              : g_strdup_printf ("\"%.40s\" is not a time; write it as 2026-12-24T20:00:00Z", text);
}

gchar *
stage_param_check (const StageParam *self, const gchar *text, gchar **value)
{
  Quantity quantity;

  if (self->type == STAGE_PARAM_TEXT || self->type == STAGE_PARAM_FILE) {
    if (strlen (text) > MAX_TEXT || !g_utf8_validate (text, -1, NULL))
      return g_strdup_printf ("expected at most %d bytes of UTF-8 text", MAX_TEXT);
    if (self->type == STAGE_PARAM_FILE && !g_path_is_absolute (text))
      return g_strdup_printf ("\"%s\" is not the absolute path of a file", text);
    *value = g_strdup (text);
    return NULL;
  }
  if (self->type == STAGE_PARAM_TIME)
    return check_time (text, value);
  if (self->type == STAGE_PARAM_CHOICE) {
    if (!stage_param_find_choice (self, text))
      return dup_wrong (self, text);
    *value = g_strdup (text);
    return NULL;
  }
  if (!read_quantity (self->type, text, &quantity) || !is_within (self, &quantity))
    return dup_wrong (self, text);
  *value = dup_quantity (self->type, &quantity);
  return NULL;
}

gboolean
stage_param_is_for_urls (const StageParam *self)
{
  return self->type != STAGE_PARAM_TEXT && self->type != STAGE_PARAM_FILE;
}

gboolean
stage_param_is_default (const StageParam *self, const gchar *value)
{
  const StageChoice *first = self->choices->len ? self->choices->pdata[0] : NULL;
  Quantity quantity;
  gchar *normal;
  gboolean same;

  if (!self->default_text)
    return first ? g_str_equal (first->name, value) : !*value;
  if (!read_quantity (self->type, self->default_text, &quantity))
    return g_str_equal (self->default_text, value);
  normal = dup_quantity (self->type, &quantity);
  same = g_str_equal (normal, value);
  g_free (normal);
  return same;
}

gchar *
stage_param_dup_shown (const StageParam *self, const gchar *value)
{
  const Scale *scales = self->type == STAGE_PARAM_BITRATE    ? bitrate_scales
                        : self->type == STAGE_PARAM_DURATION ? duration_scales
                                                             : no_scales;
  const Scale *best = NULL;
  gdouble number = g_ascii_strtod (value, NULL);

  for (; scales->suffix; scales++) {
    if (*scales->suffix && (!best || scales->scale > best->scale)
        && fmod (number, scales->scale) == 0)
      best = scales;
  }
  if (!best)
    return g_strdup (value);
  return g_strdup_printf ("%.0f%s", number / best->scale, best->suffix);
}

/* Forms */

static const struct {
  StageParamType type;
  const gchar *form;
} forms[] = {
  { STAGE_PARAM_SIZE, NULL },
  { STAGE_PARAM_SIZE, "width" },
  { STAGE_PARAM_SIZE, "height" },
  { STAGE_PARAM_BITRATE, NULL },
  { STAGE_PARAM_BITRATE, "kbit" },
  { STAGE_PARAM_DURATION, "ms" },
  { STAGE_PARAM_DURATION, "ns" },
  { STAGE_PARAM_DURATION, "frames" },
  { STAGE_PARAM_INTEGER, NULL },
  { STAGE_PARAM_NUMBER, NULL },
  { STAGE_PARAM_CHOICE, NULL },
  { STAGE_PARAM_TEXT, NULL },
  { STAGE_PARAM_TEXT, "markup" },
  { STAGE_PARAM_FILE, NULL },
};

static gboolean
has_form (const StageParam *self, const gchar *form)
{
  for (guint i = 0; i < G_N_ELEMENTS (forms); i++) {
    if (forms[i].type == self->type && !g_strcmp0 (forms[i].form, form))
      return TRUE;
  }
  return FALSE;
}

gchar *
stage_param_dup_forms (const StageParam *self)
{
  GString *all = g_string_new (NULL);

  for (guint i = 0; i < G_N_ELEMENTS (forms); i++) {
    const gchar *form = forms[i].form;

    if (forms[i].type == self->type)
      g_string_append_printf (
          all, "%s{%s%s%s}", all->len ? ", " : "", self->name, form ? "." : "", form ? form : "");
  }
  return g_string_free (all, FALSE);
}

// Returns a text or a file for launch text. The form "markup" is for elements that take Pango
// markup.
static gchar *
dup_value (const gchar *value, const gchar *form)
{
  gchar *escaped = form ? g_markup_escape_text (value, -1) : NULL;
  gchar *text = stage_text_dup_value (escaped ? escaped : value);

  g_free (escaped);
  return text;
}

gchar *
stage_param_dup_form (const StageParam *self, const gchar *value, const gchar *form)
{
  // The value has no suffix: stage_param_check() removed it.
  gdouble number = g_ascii_strtod (value, NULL);
  const StageChoice *choice;

  if (!has_form (self, form))
    return NULL;
  if (!stage_param_is_for_urls (self))
    return dup_value (value, form);
  if (!g_strcmp0 (form, "width"))
    return g_strndup (value, strcspn (value, "x"));
  if (!g_strcmp0 (form, "height"))
    return g_strdup (strchr (value, 'x') + 1);
  if (!g_strcmp0 (form, "kbit"))
    return g_strdup_printf ("%.0f", MAX (round (number / 1000), 1));
  if (!g_strcmp0 (form, "ns"))
    return g_strdup_printf ("%s000000", value);
  if (!g_strcmp0 (form, "frames"))
    return g_strdup_printf ("%.0f", MAX (round (number * FRAME_RATE / 1000), 1));
  choice = stage_param_find_choice (self, value);
  return g_strdup (choice && choice->text ? choice->text : value);
}
