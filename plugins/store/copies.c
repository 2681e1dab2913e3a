// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/copies.h"

#include "store/files.h"
#include "store/looking.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

// A folder of a title's blocks, at work until end().
typedef struct {
  const gchar *disk; // path
  gchar *folder;
  WeirDiskWork *work;
} Place;

// Returns FALSE if the store has no such disk, or if the disk is stuck.
static gboolean
begin_place (Place *place, WeirBlockStore *store, const gchar *id, guint16 disk, GError **error)
{
  place->disk = weir_block_store_get_disk_path (store, disk);
  if (!place->disk) {
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK, "the store has no disk %u", disk);
    return FALSE;
  }
  if (weir_disk_is_stuck (place->disk)) {
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK, "disk %u (%s) does not answer",
        disk, place->disk);
    return FALSE;
  }
  place->folder = store_blocks_path (place->disk, id);
  place->work = weir_disk_work_begin (place->disk);
  return TRUE;
}

static void
end (Place *place)
{
  weir_disk_work_end (place->work);
  g_free (place->folder);
}

gboolean
copies_write (WeirBlockStore *store, const gchar *id, guint32 number, guint16 disk,
    const guint8 *bytes, gsize length, gboolean sync_folder, GError **error)
{
  Place place;
  gboolean ok;

  if (!begin_place (&place, store, id, disk, error))
    return FALSE;
  ok = copies_write_to (place.disk, id, number, bytes, length, error)
       && (!sync_folder || weir_files_sync_folder (place.folder, error));
  end (&place);
  return ok;
}

gboolean
copies_write_to (const gchar *disk, const gchar *id, guint32 number, const guint8 *bytes,
    gsize length, GError **error)
{
  g_autofree gchar *folder = store_blocks_path (disk, id);
  g_autofree gchar *path = g_strdup_printf ("%s/%08x", folder, number);
  g_autofree gchar *part = g_strconcat (path, ".part", NULL);

  return weir_files_make_folders (disk, folder, error)
         && weir_files_write (path, part, bytes, length, error);
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
  gsize length = (gsize) block->length + block->table_length;
  g_autofree gchar *path = NULL;
  guint8 *bytes;
  Place place;

  if (!begin_place (&place, store, id, disk, error))
    return NULL;
  path = g_strdup_printf ("%s/%08x", place.folder, number);
  bytes = g_try_malloc (length);
  if (!bytes)
    weir_files_fail (error, ENOMEM, "read", path);
  else if (!read_copy (path, bytes, length, block->hash, error))
    g_clear_pointer (&bytes, g_free);
  end (&place);
  return bytes;
}

void
copies_remove (WeirBlockStore *store, const gchar *id, guint32 number, guint16 disk)
{
  g_autofree gchar *path = NULL;
  Place place;

  if (!begin_place (&place, store, id, disk, NULL))
    return;
  path = g_strdup_printf ("%s/%08x", place.folder, number);
  unlink (path);
  rmdir (place.folder); // if it was the last
  end (&place);
}

gboolean
copies_sync (WeirBlockStore *store, const gchar *id, guint16 disk, GError **error)
{
  Place place;
  gboolean ok;

  if (!begin_place (&place, store, id, disk, error))
    return FALSE;
  ok = weir_files_sync_folder (place.folder, error);
  end (&place);
  return ok;
}

gchar *
copies_index_path (const gchar *disk, const gchar *id)
{
  g_autofree gchar *folder = store_blocks_path (disk, id);

  return g_build_filename (folder, "index", NULL);
}

gboolean
copies_write_index (const gchar *disk, const WeirIndex *index, GError **error)
{
  g_autofree gchar *path = NULL, *part = NULL, *folder = NULL;
  gchar id[33];

  store_print_id (index->id, id);
  path = copies_index_path (disk, id);
  part = g_strconcat (path, ".part", NULL);
  folder = g_path_get_dirname (path);
  return weir_files_make_folders (disk, folder, error)
         && store_write_index_file (path, part, index, error);
}

gboolean
copies_add_index (WeirBlockStore *store, const WeirIndex *index, guint16 disk, GError **error)
{
  g_autofree gchar *path = NULL;
  Place place;
  gboolean ok;
  gchar id[33];

  store_print_id (index->id, id);
  if (!begin_place (&place, store, id, disk, error))
    return FALSE;
  path = copies_index_path (place.disk, id);
  ok = access (path, F_OK) == 0 || copies_write_index (place.disk, index, error);
  end (&place);
  return ok;
}

void
copies_remove_index (WeirBlockStore *store, const gchar *id, guint16 disk)
{
  g_autofree gchar *path = NULL;
  Place place;

  if (!begin_place (&place, store, id, disk, NULL))
    return;
  path = copies_index_path (place.disk, id);
  unlink (path);
  rmdir (place.folder);
  end (&place);
}
