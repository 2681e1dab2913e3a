// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/leftovers.h"

#include "store/disks.h"
#include "store/files.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int
leftovers_begin (WeirBlockStore *store, const gchar *id, const gchar *name, GError **error)
{
  g_autofree gchar *path = store_adding_path (store, id, "");
  g_autofree gchar *folder = g_path_get_dirname (path);
  int fd = weir_files_lock (path, TRUE, error);

  if (fd < 0)
    return -1;
  if (write (fd, name, strlen (name)) == (gssize) strlen (name) && fsync (fd) == 0
      && weir_files_sync_folder (folder, NULL))
    return fd;
  weir_files_fail (error, ENOSPC, "write", path);
  leftovers_end (store, id, fd);
  return -1;
}

void
leftovers_end (WeirBlockStore *store, const gchar *id, int fd)
{
  g_autofree gchar *path = store_adding_path (store, id, "");

  unlink (path);
  close (fd);
}

gboolean
leftovers_remove_blocks (WeirBlockStore *store, const gchar *id, guint64 *n_removed)
{
  g_autofree WeirStoreDisk *disks = g_new (WeirStoreDisk, WEIR_STORE_DISKS_MAX);
  guint n = weir_block_store_get_disks (store, disks, WEIR_STORE_DISKS_MAX);
  gboolean all = TRUE;

  for (guint i = 0; i < n; i++) {
    g_autofree gchar *path = store_blocks_path (disks[i].path, id);

    if (!disks[i].present) {
      all = FALSE;
      continue;
    }
    *n_removed += weir_files_remove_folder (path);
    all = all && access (path, F_OK) < 0;
  }
  return all;
}

gboolean
leftovers_is_busy (WeirBlockStore *store, const gchar *id)
{
  g_autofree gchar *path = store_adding_path (store, id, "");
  int fd;

  if (access (path, F_OK) < 0)
    return FALSE;
  fd = weir_files_lock (path, FALSE, NULL);
  if (fd >= 0)
    close (fd);
  return fd == -2;
}

gboolean
leftovers_is_noted (WeirBlockStore *store, const gchar *id)
{
  g_autofree gchar *path = store_adding_path (store, id, "");

  return access (path, F_OK) == 0;
}

gboolean
leftovers_any_busy (WeirBlockStore *store)
{
  g_autofree gchar *folder = store_adding_path (store, "", "");
  GDir *dir = g_dir_open (folder, 0, NULL);
  gboolean busy = FALSE;
  const gchar *name;

  while (dir && !busy && (name = g_dir_read_name (dir)))
    busy = leftovers_is_busy (store, name);
  if (dir)
    g_dir_close (dir);
  return busy;
}

// Reports whether the title `name` has this id.
static gboolean
is_named (WeirBlockStore *store, const gchar *name, const gchar *id)
{
  g_autoptr (GError) error = NULL;
  WeirIndex index;
  gint64 stamp[3];
  gchar found[33];
  gboolean same;

  if (!store_check_name (name, NULL))
    return FALSE;
  if (!store_read_index (store, name, &index, stamp, &error))
    // Whose blocks an index names that cannot be read is not known.
    return !g_error_matches (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NOT_FOUND);
  store_print_id (index.id, found);
  same = g_str_equal (found, id);
  weir_index_clear (&index);
  return same;
}

static guint64
clean_title (WeirBlockStore *store, const gchar *id, const gchar *path)
{
  gchar name[WEIR_INDEX_NAME_MAX + 1];
  int fd = weir_files_lock (path, FALSE, NULL);
  guint64 n_removed = 0;
  gssize length;

  if (fd < 0)
    return 0;
  length = read (fd, name, sizeof name - 1);
  name[MAX (length, 0)] = '\0';
  if (length >= 0
      && (is_named (store, name, id) || leftovers_remove_blocks (store, id, &n_removed)))
    unlink (path);
  close (fd);
  return n_removed;
}

guint64
leftovers_clean (WeirBlockStore *store)
{
  g_autofree gchar *folder = store_adding_path (store, "", "");
  GDir *dir = g_dir_open (folder, 0, NULL);
  const gchar *name;
  guint64 n = 0;

  while (dir && (name = g_dir_read_name (dir))) {
    g_autofree gchar *path = g_build_filename (folder, name, NULL);

    if (strlen (name) == 32 && strspn (name, "0123456789abcdef") == 32)
      n += clean_title (store, name, path);
    else
      // A part of an index: one is written only while the store is locked.
      unlink (path);
  }
  if (dir)
    g_dir_close (dir);
  return n;
}
