// SPDX-License-Identifier: LGPL-2.1-or-later
// Makes a store.

#include "store/blockstore.h"
#include "store/disks.h"
#include "store/files.h"
#include "store/storedisks.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>

static gboolean
is_empty (const gchar *dir)
{
  GDir *opened = g_dir_open (dir, 0, NULL);
  gboolean empty = opened && !g_dir_read_name (opened);

  if (opened)
    g_dir_close (opened);
  return empty;
}

static gboolean
check_folder (const gchar *dir, GError **error)
{
  g_autofree gchar *file = g_build_filename (dir, WEIR_STORE_FILE, NULL);

  if (!g_file_test (dir, G_FILE_TEST_EXISTS) || is_empty (dir))
    return TRUE;
  g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_EXISTS, "%s: %s", dir,
      g_file_test (file, G_FILE_TEST_EXISTS)
          ? "there is a store already"
          : "not an empty folder; a store needs a folder of its own");
  return FALSE;
}

// Returns a warning of all disks that are on one device with others, or NULL.
static gchar *
dup_warning (const WeirStoreFile *file)
{
  guint n = file->disks->len;
  g_autofree const gchar **paths = g_new (const gchar *, n);
  g_autofree guint64 *devices = g_new (guint64, n);
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < n; i++) {
    WeirDiskSpace space = { 0 };

    paths[i] = g_array_index (file->disks, WeirStoreFileDisk, i).path;
    weir_disk_get_space (paths[i], &space);
    devices[i] = space.device;
  }
  for (guint i = 0; i < n; i++) {
    g_autofree gchar *warning = NULL;
    gboolean last = TRUE; // on its device

    for (guint j = i + 1; j < n; j++)
      last = last && devices[j] != devices[i];
    if (last)
      warning = weir_disk_dup_warning (paths, devices, i + 1);
    if (warning)
      g_string_append_printf (text, "%s%s", text->len > 0 ? "; " : "", warning);
  }
  return g_string_free (text, text->len == 0);
}

// Names all folders that do not exist, with the command that makes them.
static gboolean
check_exist (const gchar *const *disks, GError **error)
{
  GString *missing = g_string_new (NULL);
  gboolean ok;

  for (guint i = 0; disks[i]; i++) {
    g_autofree gchar *quoted = g_shell_quote (disks[i]);

    if (!g_file_test (disks[i], G_FILE_TEST_EXISTS))
      g_string_append_printf (
          missing, " %s", strpbrk (disks[i], " \t'\"$&;*?") ? quoted : disks[i]);
  }
  ok = missing->len == 0;
  if (!ok)
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK,
        "a disk of a store is a folder on it, and these do not exist; make them: mkdir -p%s",
        missing->str);
  g_string_free (missing, TRUE);
  return ok;
}

// Adds the disks to the file, and checks them.
static gboolean
resolve_disks (WeirStoreFile *file, const gchar *dir, const gchar *const *disks, GError **error)
{
  for (guint i = 0; disks[i]; i++) {
    g_autofree gchar *path = NULL;

    if (i == WEIR_STORE_DISKS_MAX) {
      g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK, "more than %d disks",
          WEIR_STORE_DISKS_MAX);
      return FALSE;
    }
    path = weir_disk_resolve (disks[i], error);
    if (!path)
      return FALSE;
    for (guint j = 0; j < i; j++) {
      const WeirStoreFileDisk *other = &g_array_index (file->disks, WeirStoreFileDisk, j);

      if (g_str_equal (other->path, path)) {
        g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK,
            "%s is given twice; each disk needs a folder of its own", disks[i]);
        return FALSE;
      }
    }
    if (!storedisks_check_place (file, dir, path, error))
      return FALSE;
    weir_store_file_add_disk (file, path);
  }
  return TRUE;
}

static gboolean
check_count (const WeirStoreFile *file, GError **error)
{
  guint n = file->disks->len, least = weir_placement_copies (file->policy);

  if (n >= least && !(file->policy == WEIR_PLACEMENT_RAID1 && n % 2 != 0))
    return TRUE;
  g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK, "policy %s needs %s, not %u",
      weir_placement_name (file->policy),
      file->policy == WEIR_PLACEMENT_RAID1 ? "an even number of disks"
      : least > 1                          ? "two disks or more"
                                           : "one disk or more",
      n);
  return FALSE;
}

// store.yaml comes last: without it the folder is no store.
static gboolean
write_store (const gchar *dir, const WeirStoreFile *file, GError **error)
{
  g_autofree gchar *titles = g_build_filename (dir, "titles", NULL);
  g_autofree gchar *adding = g_build_filename (dir, "adding", NULL);

  if (g_mkdir (dir, 0777) < 0 && errno != EEXIST)
    return weir_files_fail (error, errno, "make the folder", dir);
  if (!weir_files_make_folders (dir, titles, error)
      || !weir_files_make_folders (dir, adding, error))
    return FALSE;
  for (guint i = 0; i < file->disks->len; i++) {
    const WeirStoreFileDisk *disk = &g_array_index (file->disks, WeirStoreFileDisk, i);

    if (!weir_disk_mark (disk->path, file->id, disk->number, error))
      return FALSE;
  }
  return weir_store_file_write (file, dir, error);
}

static void
undo (const gchar *dir, const WeirStoreFile *file)
{
  static const gchar *const folders[] = { "titles", "adding", "" };

  for (guint i = 0; i < file->disks->len; i++)
    weir_disk_unmark (g_array_index (file->disks, WeirStoreFileDisk, i).path);
  for (guint i = 0; i < G_N_ELEMENTS (folders); i++) {
    g_autofree gchar *path = g_build_filename (dir, folders[i], NULL);

    g_rmdir (path);
  }
}

gboolean
weir_block_store_init (const gchar *dir, const gchar *const *disks, WeirPlacementPolicy policy,
    gint64 slice_ns, gchar **warning, GError **error)
{
  g_autoptr (WeirStoreFile) file = weir_store_file_new ();
  g_autofree gchar *uuid = g_uuid_string_random ();
  gchar **parts = g_strsplit (uuid, "-", -1);
  g_autofree gchar *id = g_strjoinv ("", parts);
  g_autofree gchar *absolute = g_canonicalize_filename (dir, NULL);
  gboolean ok;
  gchar *real;

  g_strfreev (parts);
  if (warning)
    *warning = NULL;
  g_strlcpy (file->id, id, sizeof file->id);
  file->policy = policy;
  file->slice_ns = slice_ns;
  if (slice_ns < WEIR_STORE_SLICE_MIN_NS || slice_ns > WEIR_STORE_SLICE_MAX_NS) {
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_FAILED,
        "a slice of %.3f s is out of the range 0.1 to 60 s", (gdouble) slice_ns / 1e9);
    return FALSE;
  }
  real = realpath (dir, NULL); // NULL: there is no folder yet
  ok = check_folder (dir, error) && check_exist (disks, error)
       && resolve_disks (file, real ? real : absolute, disks, error) && check_count (file, error);
  free (real);
  if (!ok)
    return FALSE;
  if (write_store (dir, file, error)) {
    if (warning)
      *warning = dup_warning (file);
    return TRUE;
  }
  undo (dir, file);
  return FALSE;
}
