// SPDX-License-Identifier: LGPL-2.1-or-later
#include "files.h"

#include "commands.h"
#include "store/writing.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#define DEPTH_MAX 64

static void
clear_file (gpointer file)
{
  g_free (((AddFile *) file)->path);
  g_free (((AddFile *) file)->name);
}

static gboolean
set_file_error (GError **error, const gchar *path, const gchar *problem)
{
  g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_FAILED, "%s: %s", path, problem);
  return FALSE;
}

// Takes ownership of `path` and `name`.
static void
add_one (GArray *files, gchar *path, gchar *name, guint64 bytes)
{
  AddFile file = { path, name, bytes, 0 };

  g_array_append_val (files, file);
}

// Adds the files below a folder. `prefix` is "" or ends with a slash.
static gboolean
add_folder (GArray *files, const gchar *path, const gchar *prefix, guint depth, GError **error)
{
  GDir *dir = g_dir_open (path, 0, error);
  const gchar *entry;
  gboolean ok = dir != NULL;

  while (ok && (entry = g_dir_read_name (dir))) {
    g_autofree gchar *below = g_build_filename (path, entry, NULL);
    g_autofree gchar *name = g_strconcat (prefix, entry, NULL);
    gboolean link = g_file_test (below, G_FILE_TEST_IS_SYMLINK);
    struct stat st;

    if (entry[0] == '.' || stat (below, &st) < 0)
      continue;
    if (S_ISREG (st.st_mode)) {
      add_one (files, g_steal_pointer (&below), g_steal_pointer (&name), (guint64) st.st_size);
    } else if (S_ISDIR (st.st_mode) && !link && depth < DEPTH_MAX) {
      g_autofree gchar *inner = g_strconcat (name, "/", NULL);

      ok = add_folder (files, below, inner, depth + 1, error);
    }
  }
  if (dir)
    g_dir_close (dir);
  return ok;
}

static gboolean
add_word (GArray *files, const gchar *path, const gchar *name, GError **error)
{
  struct stat st;

  if (stat (path, &st) < 0)
    return set_file_error (error, path, g_strerror (errno));
  if (S_ISDIR (st.st_mode))
    return name ? set_file_error (error, path, "--name is for one file, not for a folder")
                : add_folder (files, path, "", 0, error);
  if (!S_ISREG (st.st_mode))
    return set_file_error (error, path, "neither a file nor a folder");
  add_one (files, g_strdup (path), name ? g_strdup (name) : g_path_get_basename (path),
      (guint64) st.st_size);
  return TRUE;
}

static gint
compare_files (gconstpointer a, gconstpointer b)
{
  return strcmp (((const AddFile *) a)->name, ((const AddFile *) b)->name);
}

GArray *
files_find (gchar **words, const gchar *name, GError **error)
{
  GArray *files = g_array_new (FALSE, TRUE, sizeof (AddFile));
  gboolean ok = TRUE;

  g_array_set_clear_func (files, clear_file);
  if (name && words[1])
    ok = set_file_error (error, name, "--name is for one file");
  for (guint i = 0; ok && words[i]; i++)
    ok = add_word (files, words[i], name, error);
  if (ok && files->len == 0)
    ok = set_file_error (error, words[0], "no files there");
  if (ok)
    g_array_sort (files, compare_files);
  else
    g_clear_pointer (&files, g_array_unref);
  return files;
}

// Returns FALSE after it has reported why the file cannot be added. The other files can be.
static gboolean
check_file (WeirBlockStore *store, const AddFile *file)
{
  GError *problem = NULL;

  if (!weir_title_writer_check_name (store, file->name, &problem))
    g_prefix_error (&problem, "%s: ", file->path);
  else if (file->bytes == 0)
    set_file_error (&problem, file->path, "the file is empty");
  if (problem)
    commands_fail (problem);
  return problem == NULL;
}

static gboolean
check_twins (const AddFile *file, const AddFile *other, GError **error)
{
  if (compare_files (file, other) != 0)
    return TRUE;
  g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_EXISTS,
      "%s and %s have one name, '%s'; add one of them with --name", file->path, other->path,
      file->name);
  return FALSE;
}

gboolean
files_check (WeirBlockStore *store, GArray *files, guint *n_refused, GError **error)
{
  g_autofree guint64 *bytes = g_new (guint64, files->len);
  guint64 after = 0;

  *n_refused = 0;
  for (guint i = 1; i < files->len; i++) {
    const AddFile *file = &g_array_index (files, AddFile, i);

    if (!check_twins (file - 1, file, error))
      return FALSE;
  }
  for (guint i = files->len; i-- > 0;) {
    if (!check_file (store, &g_array_index (files, AddFile, i))) {
      g_array_remove_index (files, i);
      ++*n_refused;
    }
  }
  for (guint i = files->len; i-- > 0;) {
    AddFile *file = &g_array_index (files, AddFile, i);

    bytes[i] = file->bytes;
    file->bytes_after = after;
    after += file->bytes;
  }
  return files->len == 0 || weir_title_writer_check_space (store, bytes, files->len, error);
}
