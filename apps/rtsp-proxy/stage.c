// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "stage.h"

#include "proxy_config.h"
#include "stage_elements.h"
#include "stage_text.h"

#include <string.h>

#define SUFFIX ".launch"

struct _StageSet {
  gint refs;
  GHashTable *files; // name -> StageFile
};

struct _Stage {
  gint refs;
  StageSet *set;
  const StageFile *file;
  gchar **values; // one for each of the file's parameters
};

static void
set_wrong (GError **error, const gchar *name, gchar *wrong)
{
  g_set_error (error, PROXY_CONFIG_ERROR, PROXY_CONFIG_ERROR_VALUE, "stage %s: %s", name, wrong);
  g_free (wrong);
}

/* The set */

static gboolean
load_file (StageSet *self, const gchar *directory, const gchar *entry, GError **error)
{
  gchar *name = g_strndup (entry, strlen (entry) - strlen (SUFFIX));
  gchar *path = g_build_filename (directory, entry, NULL), *text = NULL;
  StageFile *file = NULL;
  gsize len;

  if (!stage_text_is_name (name)) {
    g_set_error (error, PROXY_CONFIG_ERROR, PROXY_CONFIG_ERROR_FILE,
        "%s: a stage's name has a-z, 0-9 and - in it, a letter first", path);
  } else if (g_hash_table_contains (self->files, name)) {
    g_free (name);
    g_free (path);
    return TRUE;
  } else if (g_file_get_contents (path, &text, &len, error)) {
    file = stage_file_parse (name, path, text, len, error);
  }
  if (file)
    g_hash_table_insert (self->files, file->name, file);
  g_free (text);
  g_free (name);
  g_free (path);
  return file != NULL;
}

static gboolean
load_directory (StageSet *self, const gchar *directory, GError **error)
{
  GDir *dir = g_dir_open (directory, 0, NULL);
  const gchar *entry;
  gboolean ok = TRUE;

  while (dir && ok && (entry = g_dir_read_name (dir))) {
    if (entry[0] != '.' && g_str_has_suffix (entry, SUFFIX))
      ok = load_file (self, directory, entry, error);
  }
  if (dir)
    g_dir_close (dir);
  return ok;
}

StageSet *
stage_set_load (const gchar *const *directories, GError **error)
{
  StageSet *self = g_new0 (StageSet, 1);

  self->refs = 1;
  self->files =
      g_hash_table_new_full (g_str_hash, g_str_equal, NULL, (GDestroyNotify) stage_file_free);
  for (guint i = 0; directories[i]; i++) {
    if (!load_directory (self, directories[i], error)) {
      stage_set_unref (self);
      return NULL;
    }
  }
  return self;
}

static gboolean
runs_from_build (void)
{
  gchar *program = g_file_read_link ("/proc/self/exe", NULL);
  gboolean yes = program && g_str_has_prefix (program, BUILD_ROOT "/");

  g_free (program);
  return yes;
}

StageSet *
stage_set_load_usual (const gchar *own, GError **error)
{
  const gchar *const *data = g_get_system_data_dirs ();
  GPtrArray *directories = g_ptr_array_new_with_free_func (g_free);
  StageSet *self = NULL;

  if (own)
    g_ptr_array_add (directories, g_strdup (own));
  if (runs_from_build ())
    g_ptr_array_add (directories, g_strdup (SOURCE_STAGES_DIR));
  g_ptr_array_add (directories, g_build_filename (g_get_user_data_dir (), "weir", "stages", NULL));
  for (guint i = 0; data[i]; i++)
    g_ptr_array_add (directories, g_build_filename (data[i], "weir", "stages", NULL));
  g_ptr_array_add (directories, g_strdup (STAGES_DIR));
  g_ptr_array_add (directories, NULL);

  if (own && !g_file_test (own, G_FILE_TEST_IS_DIR))
    g_set_error (error, PROXY_CONFIG_ERROR, PROXY_CONFIG_ERROR_FILE,
        "there is no directory %s to read stages from", own);
  else
    self = stage_set_load ((const gchar *const *) directories->pdata, error);
  g_ptr_array_unref (directories);
  return self;
}

StageSet *
stage_set_ref (StageSet *self)
{
  g_atomic_int_inc (&self->refs);
  return self;
}

void
stage_set_unref (StageSet *self)
{
  if (!g_atomic_int_dec_and_test (&self->refs))
    return;
  g_hash_table_unref (self->files);
  g_free (self);
}

gboolean
stage_set_has (StageSet *self, const gchar *name)
{
  return g_hash_table_contains (self->files, name);
}

static gint
compare_files (gconstpointer a, gconstpointer b)
{
  return strcmp ((*(StageFile *const *) a)->name, (*(StageFile *const *) b)->name);
}

GPtrArray *
stage_set_dup_files (StageSet *self)
{
  GPtrArray *files = g_ptr_array_new ();
  GHashTableIter iter;
  gpointer file;

  g_hash_table_iter_init (&iter, self->files);
  while (g_hash_table_iter_next (&iter, NULL, &file))
    g_ptr_array_add (files, file);
  g_ptr_array_sort (files, compare_files);
  return files;
}

const gchar *
stage_set_find_decoder (StageSet *self, StageMedia media)
{
  static const gchar *const names[] = { "decode", "decode-audio" };

  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    const StageFile *file = g_hash_table_lookup (self->files, names[i]);

    if (file && file->takes == STAGE_RTP && file->gives == STAGE_RAW
        && (file->media & media) == media)
      return file->name;
  }
  return NULL;
}

/* A stage */

static gchar *
dup_names (StageSet *set)
{
  GPtrArray *files = stage_set_dup_files (set);
  GString *names = g_string_new (NULL);

  for (guint i = 0; i < files->len; i++)
    g_string_append_printf (
        names, "%s%s", i ? ", " : "", ((StageFile *) g_ptr_array_index (files, i))->name);
  g_ptr_array_unref (files);
  return g_string_free (names, FALSE);
}

// The first whose elements exist, or else the first: its missing element is what is named then.
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
  const StageFile *file = g_hash_table_lookup (set->files, name);
  Stage *self;

  if (!file) {
    gchar *names = dup_names (set);

    g_set_error (error, PROXY_CONFIG_ERROR, PROXY_CONFIG_ERROR_KEY,
        "there is no stage \"%.40s\"; there are %s", name, *names ? names : "none");
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

  g_string_printf (wrong, "%s has no parameter \"%.40s\"; it has ", file->name, name);
  for (guint i = 0; i < file->params->len; i++)
    g_string_append_printf (
        wrong, "%s%s", i ? ", " : "", ((StageParam *) g_ptr_array_index (file->params, i))->name);
  return g_string_free (g_string_append (wrong, file->params->len ? "" : "none"), FALSE);
}

gchar *
stage_set_value (Stage *self, const gchar *param, const gchar *value)
{
  gint i = find_param (self->file, param);
  gchar *spelling, *wrong, *named;

  if (i < 0)
    return dup_unknown (self->file, param);
  wrong = stage_param_check (g_ptr_array_index (self->file->params, i), value, &spelling);
  if (!wrong) {
    g_free (self->values[i]);
    self->values[i] = spelling;
    return NULL;
  }
  named = g_strdup_printf ("%s: %s", param, wrong);
  g_free (wrong);
  return named;
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

/* Its launch text */

typedef struct {
  const Stage *stage;
  const gchar *codec; // the text that is put in for it; NULL within what is put in
} Context;

static gchar *
look_up (const gchar *name, const gchar *form, gpointer data)
{
  const Context *context = data;
  Context nested = { context->stage, NULL };
  gint i = find_param (context->stage->file, name);
  gchar *text, *expanded;
  gsize offset;

  if (context->codec && !form && g_str_equal (name, "codec"))
    return stage_text_expand (context->codec, look_up, &nested, &offset);
  if (i < 0)
    return NULL;
  text = stage_param_dup_form (
      g_ptr_array_index (context->stage->file->params, i), context->stage->values[i], form);
  if (!text || !context->codec)
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
dup_untaken (const StageFile *file, const gchar *codec)
{
  GString *wrong = g_string_new ("it takes ");

  for (guint i = 0; i < file->codecs->len; i++)
    g_string_append_printf (
        wrong, "%s%s", i ? ", " : "", ((StageCodec *) g_ptr_array_index (file->codecs, i))->name);
  g_string_append_printf (wrong, ", not %.40s", codec ? codec : "RTP of an unknown codec");
  return g_string_free (wrong, FALSE);
}

gchar *
stage_dup_launch (const Stage *self, const gchar *codec, GError **error)
{
  const StageFile *file = self->file;
  const StageCodec *taken = codec ? stage_file_find_codec (file, codec) : NULL;
  Context context = { self, "" };
  gsize offset;

  if (file->native) {
    set_wrong (error, file->name, g_strdup ("the proxy does it itself; there is no launch text"));
    return NULL;
  }
  if (file->codecs->len && !taken) {
    set_wrong (error, file->name, dup_untaken (file, codec));
    return NULL;
  }
  if (taken)
    context.codec = choose_text (taken);
  return stage_text_expand (file->text, look_up, &context, &offset);
}

static gboolean
check_codec (const Stage *self, const gchar *codec, GError **error)
{
  gchar *launch = stage_dup_launch (self, codec, error);
  gchar *wrong = launch ? stage_elements_check (launch) : NULL;
  gboolean ok = launch && !wrong;

  if (wrong)
    set_wrong (error, self->file->name, wrong);
  g_free (launch);
  return ok;
}

// Without a codec one of those that it takes has to work; what is wrong with the first is told.
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
