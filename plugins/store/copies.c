// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/copies.h"

#include "store/files.h"
#include "store/looking.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

// Returns the folder of a title's blocks. (transfer full)
static gchar *
folder_of (WeirBlockStore *store, const gchar *id, guint16 disk, GError **error)
{
  const gchar *path = weir_block_store_get_disk_path (store, disk);

  if (path && !weir_disk_is_stuck (path))
    return store_blocks_path (path, id);
  if (path)
    g_set_error (
        error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK, "disk %u (%s) does not answer", disk, path);
  else
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK, "the store has no disk %u", disk);
  return NULL;
}

gboolean
copies_write (WeirBlockStore *store, const gchar *id, guint32 number, guint16 disk,
    const guint8 *bytes, gsize length, gboolean sync_folder, GError **error)
{
  g_autofree gchar *folder = folder_of (store, id, disk, error), *path, *part;

  path = folder ? g_strdup_printf ("%s/%08x", folder, number) : NULL;
  part = folder ? g_strconcat (path, ".part", NULL) : NULL;
  return folder
         && weir_files_make_folders (weir_block_store_get_disk_path (store, disk), folder, error)
         && weir_files_write (path, part, bytes, length, error)
         && (!sync_folder || weir_files_sync_folder (folder, error));
}

// Returns 0 or an errno.
static int
read_all (int fd, guint8 *bytes, gsize length)
{
  // Drops what is in the page cache, so that the disk is read.
  posix_fadvise (fd, 0, 0, POSIX_FADV_DONTNEED);
  while (length > 0) {
    gssize n = read (fd, bytes, length);

    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return n < 0 ? errno : EIO;
    bytes += n;
    length -= (gsize) n;
  }
  posix_fadvise (fd, 0, 0, POSIX_FADV_DONTNEED);
  return 0;
}

static gboolean
read_copy (const gchar *path, guint8 *bytes, gsize length, guint64 hash, GError **error)
{
  int fd = open (path, O_RDONLY | O_CLOEXEC), problem = 0;
  struct stat st = { 0 };

  if (fd < 0)
    return weir_files_fail (error, errno, "read", path);
  if (fstat (fd, &st) < 0)
    problem = errno;
  else if ((guint64) st.st_size == length)
    problem = read_all (fd, bytes, length);
  close (fd);
  if (problem != 0)
    return weir_files_fail (error, problem, "read", path);
  if ((guint64) st.st_size != length) {
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_CORRUPT,
        "%s has %" G_GINT64_FORMAT " bytes, not %" G_GSIZE_FORMAT, path, (gint64) st.st_size,
        length);
    return FALSE;
  }
  if (XXH3_64bits (bytes, length) == hash)
    return TRUE;
  g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_CORRUPT,
      "%s: the hash of its bytes is wrong", path);
  return FALSE;
}

guint8 *
copies_read (WeirBlockStore *store, const gchar *id, guint32 number, const WeirIndexBlock *block,
    guint16 disk, GError **error)
{
  g_autofree gchar *folder = folder_of (store, id, disk, error), *path = NULL;
  gsize length = (gsize) block->length + block->table_length;
  guint8 *bytes;

  if (!folder)
    return NULL;
  path = g_strdup_printf ("%s/%08x", folder, number);
  bytes = g_try_malloc (length);
  if (!bytes)
    weir_files_fail (error, ENOMEM, "read", path);
  else if (!read_copy (path, bytes, length, block->hash, error))
    g_clear_pointer (&bytes, g_free);
  return bytes;
}

void
copies_remove (WeirBlockStore *store, const gchar *id, guint32 number, guint16 disk)
{
  g_autofree gchar *folder = folder_of (store, id, disk, NULL);

  if (folder) {
    g_autofree gchar *path = g_strdup_printf ("%s/%08x", folder, number);

    unlink (path);
    rmdir (folder); // if it was the last
  }
}

gboolean
copies_sync (WeirBlockStore *store, const gchar *id, guint16 disk, GError **error)
{
  g_autofree gchar *folder = folder_of (store, id, disk, error);

  return folder && weir_files_sync_folder (folder, error);
}
