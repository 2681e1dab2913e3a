// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/disks.h"

#include "store/blockstore.h"
#include "store/files.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MARK "weir-disk"
#define BLOCKS "blocks"
#define MARK_FORMAT "weir-disk 1\nstore %s\nnumber %u\n"

gboolean
weir_disk_mark (const gchar *path, const gchar *store, guint16 number, GError **error)
{
  g_autofree gchar *mark = g_build_filename (path, MARK, NULL);
  g_autofree gchar *part = g_strconcat (mark, ".part", NULL);
  g_autofree gchar *blocks = g_build_filename (path, BLOCKS, NULL);
  g_autofree gchar *text = g_strdup_printf (MARK_FORMAT, store, number);

  return weir_files_make_folders (path, blocks, error)
         && weir_files_write (mark, part, (const guint8 *) text, strlen (text), error)
         && weir_files_sync_folder (path, error);
}

void
weir_disk_unmark (const gchar *path)
{
  g_autofree gchar *mark = g_build_filename (path, MARK, NULL);
  g_autofree gchar *blocks = g_build_filename (path, BLOCKS, NULL);

  unlink (mark);
  rmdir (blocks);
}

const gchar *
weir_disk_state_name (WeirDiskState state)
{
  static const gchar *const names[] = { "ok", "missing", "permission denied", "another disk",
    "failing", "no answer" };

  return names[state];
}

WeirDiskState
weir_disk_check (const gchar *path, const gchar *store, guint16 number)
{
  g_autofree gchar *mark = g_build_filename (path, MARK, NULL), *text = NULL;
  g_autofree gchar *expected = g_strdup_printf (MARK_FORMAT, store, number);
  g_autoptr (GError) problem = NULL;

  if (g_file_get_contents (mark, &text, NULL, &problem))
    return g_str_equal (text, expected) ? WEIR_DISK_THERE : WEIR_DISK_OTHER;
  if (g_error_matches (problem, G_FILE_ERROR, G_FILE_ERROR_NOENT)
      || g_error_matches (problem, G_FILE_ERROR, G_FILE_ERROR_NOTDIR))
    return WEIR_DISK_MISSING;
  return g_error_matches (problem, G_FILE_ERROR, G_FILE_ERROR_ACCES)
                 || g_error_matches (problem, G_FILE_ERROR, G_FILE_ERROR_PERM)
             ? WEIR_DISK_FORBIDDEN
             : WEIR_DISK_FAILING;
}

// Returns the real path of an existing folder.
static gchar *
resolve (const gchar *path, GError **error)
{
  gchar *resolved = realpath (path, NULL), *copy;

  if (!resolved && errno == ENOENT)
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK,
        "%s does not exist; a disk is the path of a folder on it: make it (mkdir -p %s)", path,
        path);
  else if (!resolved)
    weir_files_fail (error, errno, "use the folder as a disk", path);
  if (!resolved)
    return NULL;
  copy = g_strdup (resolved);
  free (resolved);
  if (!g_file_test (copy, G_FILE_TEST_IS_DIR))
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK,
        "%s is not a folder; a disk is the path of a folder on it", path);
  else if (!g_utf8_validate (copy, -1, NULL))
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK, "%s: the path is not UTF-8", path);
  else
    return copy;
  g_free (copy);
  return NULL;
}

static gboolean
has_blocks (const gchar *path)
{
  g_autofree gchar *blocks = g_build_filename (path, BLOCKS, NULL);
  GDir *dir = g_dir_open (blocks, 0, NULL);
  gboolean has = dir && g_dir_read_name (dir);

  if (dir)
    g_dir_close (dir);
  return has;
}

gchar *
weir_disk_resolve_for (const gchar *path, const gchar *store, guint16 number, GError **error)
{
  g_autofree gchar *resolved = resolve (path, error), *mark = NULL;

  if (!resolved || (store && weir_disk_check (resolved, store, number) == WEIR_DISK_THERE))
    return g_steal_pointer (&resolved);
  mark = g_build_filename (resolved, MARK, NULL);
  if (!g_file_test (mark, G_FILE_TEST_EXISTS)) {
    // Titles that were removed meanwhile would come back with the copies of their indexes.
    if (!has_blocks (resolved))
      return g_steal_pointer (&resolved);
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK,
        "%s has blocks of a store; remove its folder %s first if they are not needed", path,
        BLOCKS);
    return NULL;
  }
  g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK,
      "%s is a disk of a store already; remove its file %s if that store is no more", path, MARK);
  return NULL;
}

gchar *
weir_disk_resolve (const gchar *path, GError **error)
{
  return weir_disk_resolve_for (path, NULL, 0, error);
}

gchar *
weir_disk_dup_warning (const gchar *const *paths, const guint64 *devices, guint n)
{
  g_autoptr (GPtrArray) same = g_ptr_array_new ();
  g_autofree gchar *list = NULL;

  for (guint i = 0; i + 1 < n; i++) {
    if (devices[i] != 0 && devices[i] == devices[n - 1])
      g_ptr_array_add (same, (gpointer) paths[i]);
  }
  if (same->len == 0)
    return NULL;
  g_ptr_array_add (same, NULL);
  list = g_strjoinv (", ", (gchar **) same->pdata);
  return g_strdup_printf (
      "%s and %s are on one device: they neither add their speed nor keep a copy "
      "when the device fails",
      list, paths[n - 1]);
}

gboolean
weir_disk_get_space (const gchar *path, WeirDiskSpace *space)
{
  struct statvfs vfs;
  struct stat st;

  if (stat (path, &st) < 0 || statvfs (path, &vfs) < 0)
    return FALSE;
  space->device = st.st_dev;
  space->bytes = (guint64) vfs.f_blocks * vfs.f_frsize;
  space->free_bytes = (guint64) vfs.f_bavail * vfs.f_frsize;
  return TRUE;
}
