// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"
#include "folders.h"

#include "stages/stage_set.h"

#include "isolate/launch_paths.h"
#include "stages/stage_parse.h"
#include "stages/stage_text.h"
#include "text/config_error.h"

#include <string.h>

#define SUFFIX ".launch"
#define MAX_ACCEPTED 256

struct _StageSet {
  gint refs;
  GHashTable *files; // name -> StageFile
  GMutex lock;
  GHashTable *accepted; // launch texts that GStreamer accepted; guarded by `lock`
};

static gboolean
load_file (StageSet *self, const gchar *directory, const gchar *entry, GError **error)
{
  gchar *name = g_strndup (entry, strlen (entry) - strlen (SUFFIX));
  gchar *path = g_build_filename (directory, entry, NULL), *text = NULL;
  StageFile *file = NULL;
  gsize len;

  if (!stage_text_is_name (name)) {
    g_set_error (error, CONFIG_ERROR, CONFIG_ERROR_FILE,
        "%s: rename the file: a stage's name has a letter first, then a-z, 0-9 and -, at most 32 "
        "characters",
        path);
  } else if (g_hash_table_contains (self->files, name)) {
    g_free (name);
    g_free (path);
    return TRUE;
  } else if (g_file_get_contents (path, &text, &len, error)) {
    file = stage_file_parse (name, path, text, len, error);
  }
  if (file) {
    file->paths = launch_paths_find (text);
    g_hash_table_insert (self->files, file->name, file);
  }
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
  self->accepted = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_mutex_init (&self->lock);
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
    g_set_error (
        error, CONFIG_ERROR, CONFIG_ERROR_FILE, "cannot read stages from %s: no such folder", own);
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
  g_hash_table_unref (self->accepted);
  g_mutex_clear (&self->lock);
  g_free (self);
}

const StageFile *
stage_set_find (StageSet *self, const gchar *name)
{
  return g_hash_table_lookup (self->files, name);
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

gchar *
stage_set_dup_names (StageSet *self)
{
  GPtrArray *files = stage_set_dup_files (self);
  GString *names = g_string_new (NULL);

  for (guint i = 0; i < files->len; i++)
    g_string_append_printf (
        names, "%s%s", i ? ", " : "", ((StageFile *) g_ptr_array_index (files, i))->name);
  g_ptr_array_unref (files);
  return g_string_free (names, FALSE);
}

void
stage_set_allow_paths (StageSet *self)
{
  GHashTableIter iter;
  gpointer file;

  g_hash_table_iter_init (&iter, self->files);
  while (g_hash_table_iter_next (&iter, NULL, &file))
    launch_paths_allow (((StageFile *) file)->paths, SANDBOX_STAGE);
}

gboolean
stage_set_is_accepted (StageSet *self, const gchar *launch)
{
  gboolean known;

  g_mutex_lock (&self->lock);
  known = g_hash_table_contains (self->accepted, launch);
  g_mutex_unlock (&self->lock);
  return known;
}

void
stage_set_add_accepted (StageSet *self, const gchar *launch)
{
  g_mutex_lock (&self->lock);
  if (g_hash_table_size (self->accepted) >= MAX_ACCEPTED)
    g_hash_table_remove_all (self->accepted);
  g_hash_table_add (self->accepted, g_strdup (launch));
  g_mutex_unlock (&self->lock);
}
