// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stages/stage.h"

#include "stages/stage_elements.h"
#include "stages/stage_text.h"
#include "text/config_error.h"

struct _Stage {
  gint refs;
  StageSet *set;
  const StageFile *file;
  gchar **values; // one for each of the file's parameters
};

// Takes ownership of `wrong`.
static void
set_error (GError **error, const gchar *name, gchar *wrong)
{
  g_set_error (error, CONFIG_ERROR, CONFIG_ERROR_VALUE, "stage %s: %s", name, wrong);
  g_free (wrong);
}

// Returns the first choice whose elements exist. Returns the first choice if there is none, so that
// errors name the missing element of that choice.
static gchar *
dup_default_choice (const StageParam *param)
{
  const StageChoice *choice;

  for (guint i = 0; i < param->choices->len; i++) {
    gchar *missing = NULL;

    choice = g_ptr_array_index (param->choices, i);
    if (choice->text)
      missing = stage_elements_find_missing (choice->text);
    if (!missing)
      return g_strdup (choice->name);
    g_free (missing);
  }
  choice = g_ptr_array_index (param->choices, 0);
  return g_strdup (choice->name);
}

static gchar *
dup_default (const StageParam *param)
{
  gchar *value = NULL;

  if (param->default_text)
    g_free (stage_param_check (param, param->default_text, &value));
  else if (param->type == STAGE_PARAM_CHOICE)
    value = dup_default_choice (param);
  return value ? value : g_strdup ("");
}

Stage *
stage_new (StageSet *set, const gchar *name, GError **error)
{
  const StageFile *file = stage_set_find (set, name);
  Stage *self;

  if (!file) {
    gchar *names = stage_set_dup_names (set);

    g_set_error (error, CONFIG_ERROR, CONFIG_ERROR_KEY,
        "there is no stage \"%.40s\"; known stages: %s", name, *names ? names : "none");
    g_free (names);
    return NULL;
  }
  self = g_new0 (Stage, 1);
  self->refs = 1;
  self->set = stage_set_ref (set);
  self->file = file;
  self->values = g_new0 (gchar *, file->params->len + 1);
  for (guint i = 0; i < file->params->len; i++)
    self->values[i] = dup_default (g_ptr_array_index (file->params, i));
  return self;
}

Stage *
stage_copy (const Stage *self)
{
  Stage *copy = g_new0 (Stage, 1);

  copy->refs = 1;
  copy->set = stage_set_ref (self->set);
  copy->file = self->file;
  copy->values = g_strdupv (self->values);
  return copy;
}

Stage *
stage_ref (Stage *self)
{
  g_atomic_int_inc (&self->refs);
  return self;
}

void
stage_unref (Stage *self)
{
  if (!g_atomic_int_dec_and_test (&self->refs))
    return;
  stage_set_unref (self->set);
  g_strfreev (self->values);
  g_free (self);
}

static gint
find_param (const StageFile *file, const gchar *name)
{
  for (guint i = 0; i < file->params->len; i++) {
    if (g_str_equal (((StageParam *) g_ptr_array_index (file->params, i))->name, name))
      return (gint) i;
  }
  return -1;
}

static gchar *
dup_unknown (const StageFile *file, const gchar *name)
{
  GString *wrong = g_string_new (NULL);

  g_string_printf (wrong, "%s has no parameter \"%.40s\"; known parameters: ", file->name, name);
  for (guint i = 0; i < file->params->len; i++)
    g_string_append_printf (
        wrong, "%s%s", i ? ", " : "", ((StageParam *) g_ptr_array_index (file->params, i))->name);
  return g_string_free (g_string_append (wrong, file->params->len ? "" : "none"), FALSE);
}

gchar *
stage_assign (Stage *self, const gchar *param, const gchar *value)
{
  gint i = find_param (self->file, param);
  gchar *spelling, *wrong, *message;

  if (i < 0)
    return dup_unknown (self->file, param);
  wrong = stage_param_check (g_ptr_array_index (self->file->params, i), value, &spelling);
  if (!wrong) {
    g_free (self->values[i]);
    self->values[i] = spelling;
    return NULL;
  }
  message = g_strdup_printf ("%s: %s", param, wrong);
  g_free (wrong);
  return message;
}

const StageFile *
stage_get_file (const Stage *self)
{
  return self->file;
}

const gchar *
stage_get_value (const Stage *self, const gchar *param)
{
  gint i = find_param (self->file, param);

  return i < 0 ? NULL : self->values[i];
}

gchar *
stage_dup_key (const Stage *self)
{
  GString *key = g_string_new (self->file->name);

  g_string_append_c (key, '(');
  for (guint i = 0; i < self->file->params->len; i++) {
    const StageParam *param = g_ptr_array_index (self->file->params, i);

    g_string_append_printf (key, "%s%s=", i ? "," : "", param->name);
    g_string_append_uri_escaped (key, self->values[i], "/:", TRUE);
  }
  g_string_append_c (key, ')');
  return g_string_free (key, FALSE);
}

// Returns a time in ns since 1970. Those that do not fit are as early or as late as can be.
static gint64
get_ns (GDateTime *time)
{
  const gint64 s =
      CLAMP (g_date_time_to_unix (time), 0, G_MAXINT64 / 2 / G_GINT64_CONSTANT (1000000000));

  return s * G_GINT64_CONSTANT (1000000000)
         + g_date_time_get_microsecond (time) * G_GINT64_CONSTANT (1000);
}

/* Launch text */

typedef struct {
  const Stage *stage;
  const gchar *codec; // the text of {codec}; NULL inside a text that is being inserted
} Context;

static gchar *
look_up (const gchar *name, const gchar *form, gpointer data)
{
  const Context *context = data;
  Context nested = { context->stage, NULL };
  gint i = find_param (context->stage->file, name);
  const StageParam *param;
  gchar *text, *expanded;
  gsize offset;

  if (context->codec && !form && g_str_equal (name, "codec"))
    return stage_text_expand (context->codec, look_up, &nested, &offset);
  if (i < 0)
    return NULL;
  param = g_ptr_array_index (context->stage->file->params, i);
  text = stage_param_dup_form (param, context->stage->values[i], form);
  if (!text || !context->codec || param->type != STAGE_PARAM_CHOICE)
    return text;
  expanded = stage_text_expand (text, look_up, &nested, &offset);
  g_free (text);
  return expanded;
}

static const gchar *
choose_text (const StageCodec *codec)
{
  for (guint i = 0; i < codec->texts->len; i++) {
    gchar *missing = stage_elements_find_missing (g_ptr_array_index (codec->texts, i));

    if (!missing)
      return g_ptr_array_index (codec->texts, i);
    g_free (missing);
  }
  return g_ptr_array_index (codec->texts, 0);
}

static gchar *
dup_wrong_codec (const StageFile *file, const gchar *codec)
{
  GString *wrong = g_string_new ("takes ");

  for (guint i = 0; i < file->codecs->len; i++)
    g_string_append_printf (
        wrong, "%s%s", i ? ", " : "", ((StageCodec *) g_ptr_array_index (file->codecs, i))->name);
  g_string_append_printf (wrong, ", not %.40s", codec ? codec : "an unknown codec");
  return g_string_free (wrong, FALSE);
}

static const StageParam *
find_lacking_file (const Stage *self)
{
  for (guint i = 0; i < self->file->params->len; i++) {
    const StageParam *param = g_ptr_array_index (self->file->params, i);

    if (param->type == STAGE_PARAM_FILE && !*self->values[i])
      return param;
  }
  return NULL;
}

gchar *
stage_dup_launch (const Stage *self, const gchar *codec, GError **error)
{
  const StageFile *file = self->file;
  const StageParam *lacking = find_lacking_file (self);
  const StageCodec *taken = codec ? stage_file_find_codec (file, codec) : NULL;
  Context context = { self, "" };
  gsize offset;

  if (file->native) {
    set_error (error, file->name, g_strdup ("is built into the proxy and has no launch text"));
    return NULL;
  }
  if (lacking) {
    set_error (error, file->name,
        g_strdup_printf (
            "%s is missing: %s", lacking->name, lacking->help ? lacking->help : "a file"));
    return NULL;
  }
  if (file->codecs->len && !taken) {
    set_error (error, file->name, dup_wrong_codec (file, codec));
    return NULL;
  }
  if (taken)
    context.codec = choose_text (taken);
  return stage_text_expand (file->text, look_up, &context, &offset);
}

gchar *
stage_dup_fades (const Stage *self)
{
  const GPtrArray *fades = self->file->fades;
  const gchar *at = stage_get_value (self, "at"), *ms = stage_get_value (self, "time");
  GDateTime *time = fades->len && *at ? g_date_time_new_from_iso8601 (at, NULL) : NULL;
  GString *out;

  if (fades->len == 0)
    return NULL;
  out = g_string_new (NULL);
  // Without a time, all has changed.
  g_string_printf (out, "%" G_GINT64_FORMAT " %s000000", time ? get_ns (time) : 0, ms);
  for (guint i = 0; i < fades->len; i++) {
    const StageFade *fade = g_ptr_array_index (fades, i);
    gchar from[G_ASCII_DTOSTR_BUF_SIZE], to[G_ASCII_DTOSTR_BUF_SIZE];

    g_string_append_printf (out, " %s %s %s", fade->property,
        g_ascii_dtostr (from, sizeof from, fade->from), g_ascii_dtostr (to, sizeof to, fade->to));
  }
  g_clear_pointer (&time, g_date_time_unref);
  return g_string_free (out, FALSE);
}

static gboolean
check_codec (const Stage *self, const gchar *codec, GError **error)
{
  g_autofree gchar *launch = stage_dup_launch (self, codec, error), *fades = NULL;
  gchar *wrong;

  if (!launch)
    return FALSE;
  fades = stage_dup_fades (self);
  wrong = stage_set_is_accepted (self->set, launch)
              ? NULL
              : stage_elements_check (launch, fades, self->file->inputs);
  if (!wrong)
    stage_set_add_accepted (self->set, launch);
  if (!wrong)
    return TRUE;
  set_error (error, self->file->name, wrong);
  return FALSE;
}

// Checks that at least one of the stage's codecs works. If none does, sets the error of the first.
static gboolean
check_any_codec (const Stage *self, GError **error)
{
  const GPtrArray *codecs = self->file->codecs;
  GError *first = NULL;

  for (guint i = 0; i < codecs->len; i++) {
    const StageCodec *codec = g_ptr_array_index (codecs, i);

    if (check_codec (self, codec->name, first ? NULL : &first)) {
      g_clear_error (&first);
      return TRUE;
    }
  }
  g_propagate_error (error, first);
  return FALSE;
}

gboolean
stage_check_elements (const Stage *self, const gchar *codec, GError **error)
{
  if (self->file->native)
    return TRUE;
  if (!codec && self->file->codecs->len)
    return check_any_codec (self, error);
  return check_codec (self, codec, error);
}

void
stage_foreach_file (
    const Stage *self, void (*each) (const gchar *path, gpointer data), gpointer data)
{
  for (guint i = 0; i < self->file->params->len; i++) {
    const StageParam *param = g_ptr_array_index (self->file->params, i);

    if (param->type == STAGE_PARAM_FILE && *self->values[i])
      each (self->values[i], data);
  }
}

gboolean
stage_has_foreign_elements (const Stage *self)
{
  const GPtrArray *codecs = self->file->codecs;
  gboolean foreign = FALSE;

  for (guint i = 0; i < MAX (codecs->len, 1) && !foreign; i++) {
    const StageCodec *codec = codecs->len ? g_ptr_array_index (codecs, i) : NULL;
    gchar *launch = stage_dup_launch (self, codec ? codec->name : NULL, NULL);

    foreign = launch && stage_elements_has_foreign (launch);
    g_free (launch);
  }
  return foreign;
}
