// SPDX-License-Identifier: LGPL-2.1-or-later
// Replaces a disk. The new one has the old one's number, so no index changes.

#include "store/balancing.h"
#include "store/copies.h"
#include "store/disks.h"
#include "store/files.h"
#include "store/leftovers.h"
#include "store/looking.h"
#include "store/storedisks.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESERVE (G_GUINT64_CONSTANT (1) << 20) // of the new disk, for folders
#define BUSY_MS 50

typedef struct {
  Upkeep up;
  guint16 number;
  gchar *path;       // of the new disk
  gboolean old_good; // the old disk is there, and has shown no error
  guint64 needed;    // bytes that the new disk lacked at the beginning
} Replace;

// Reports whether the new disk has the copy. Copies get their names when they are durable.
static gboolean
has_copy (const Replace *self, const gchar *id, guint32 number, const WeirIndexBlock *block)
{
  g_autofree gchar *folder = store_blocks_path (self->path, id);
  g_autofree gchar *path = g_strdup_printf ("%s/%08x", folder, number);
  struct stat st;

  return stat (path, &st) == 0
         && (guint64) st.st_size == (guint64) block->length + block->table_length;
}

static gboolean
is_named (const Replace *self, const WeirIndexBlock *block)
{
  return block->disks[0] == self->number
         || (block->n_copies > 1 && block->disks[1] == self->number);
}

// Reads a block from the old disk, until that has shown an error, or from the other copy; if that
// fails, from the old disk after all.
static guint8 *
read_block (
    Replace *self, WeirStoredTitle *title, const gchar *id, guint32 number, gboolean has_old)
{
  const WeirIndexBlock *block = &title->index.blocks[number];
  guint8 *bytes = NULL;
  const gboolean tried = self->old_good;

  if (tried)
    bytes = copies_read (self->up.store, id, number, block, self->number, NULL);
  if (!bytes)
    self->old_good = FALSE;
  if (!bytes)
    bytes = upkeep_read (title, number, self->number, NULL);
  if (!bytes && has_old && !tried)
    bytes = copies_read (self->up.store, id, number, block, self->number, NULL);
  return bytes;
}

// Writes the title's copies that the new disk lacks. Returns FALSE with an error if the work is to
// end; a block that cannot be read is none.
static gboolean
fill_title (Replace *self, WeirStoredTitle *title, gboolean has_old, GError **error)
{
  const WeirIndex *index = &title->index;
  g_autofree gchar *folder = NULL;
  guint32 n_lost = 0, n_written = 0;
  gboolean ok = TRUE, is_here = upkeep_uses_disk (index, self->number);
  gchar id[33];

  store_print_id (index->id, id);
  folder = store_blocks_path (self->path, id);
  for (guint32 i = 0; ok && i < index->n_blocks; i++) {
    const gsize length = (gsize) index->blocks[i].length + index->blocks[i].table_length;
    g_autofree guint8 *bytes = NULL;

    if (!is_named (self, &index->blocks[i]) || has_copy (self, id, i, &index->blocks[i]))
      continue;
    bytes = read_block (self, title, id, i, has_old);
    n_lost += bytes == NULL;
    if (!bytes)
      continue;
    ok = copies_write_to (self->path, id, i, bytes, length, error);
    n_written += ok;
    self->up.done += length;
    upkeep_report (&self->up, index->name, NULL);
    ok = ok && upkeep_pace (&self->up, length, error);
  }
  self->up.result.moved += n_written;
  self->up.result.lost_blocks += n_lost;
  if (n_lost > 0) {
    g_autofree gchar *text = g_strdup_printf ("%u blocks have no good copy", n_lost);

    upkeep_report (&self->up, index->name, text);
  }
  if (ok && is_here)
    ok = copies_write_index (self->path, index, error) && weir_files_sync_folder (folder, error);
  return ok;
}

typedef gboolean (*TitleFunc) (
    Replace *self, WeirStoredTitle *title, gboolean has_old, GError **error);

static gboolean
for_all (Replace *self, TitleFunc func, gboolean has_old, GError **error)
{
  Upkeep listing = { self->up.store, .cancellable = self->up.cancellable };
  GPtrArray *names = upkeep_list (&listing, NULL, error);
  gboolean ok = names != NULL;

  self->up.result.bad_indexes = listing.result.bad_indexes;
  for (guint i = 0; ok && i < names->len; i++) {
    WeirStoredTitle *title = weir_block_store_open_title (self->up.store, names->pdata[i], NULL);

    if (!title)
      continue;
    ok = func (self, title, has_old, error);
    weir_stored_title_unref (title);
  }
  if (names)
    g_ptr_array_unref (names);
  return ok;
}

// Adds what is to be written to `needed`.
static gboolean
count_title (Replace *self, WeirStoredTitle *title, gboolean has_old, GError **error)
{
  gchar id[33];

  store_print_id (title->index.id, id);
  for (guint32 i = 0; i < title->index.n_blocks; i++) {
    const WeirIndexBlock *block = &title->index.blocks[i];

    if (is_named (self, block) && !has_copy (self, id, i, block))
      self->needed += (guint64) block->length + block->table_length;
  }
  return !g_cancellable_set_error_if_cancelled (self->up.cancellable, error);
}

// Checks that the new disk has room for what it is to get.
static gboolean
check_room (Replace *self, GError **error)
{
  WeirDiskSpace space = { 0 };
  guint64 room;

  if (!for_all (self, count_title, FALSE, error))
    return FALSE;
  self->up.total = self->needed;
  if (!weir_disk_get_space (self->path, &space)) {
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK,
        "%s does not say how much room it has", self->path);
    return FALSE;
  }
  room = space.free_bytes - MIN (space.free_bytes, RESERVE);
  if (self->needed <= room)
    return TRUE;
  g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NO_SPACE,
      "no room on %s: %.1f MB are needed for the copies of disk %u, and there is room for %.1f MB",
      self->path, (gdouble) self->needed / 1e6, self->number, (gdouble) room / 1e6);
  return FALSE;
}

// ---- store.yaml ----

// Finds the disk to be replaced: by its old path, or, if a call was killed after it had changed
// that, by the new one.
static WeirStoreFileDisk *
find_disk (
    WeirBlockStore *store, WeirStoreFile *file, const gchar *old, const gchar *path, GError **error)
{
  WeirStoreFileDisk *disk = storedisks_find (file, old);

  if (!disk)
    disk = storedisks_find (file, path);
  if (!disk)
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK, "store %s has no disk %s",
        store->path, old);
  return disk;
}

static gboolean
check_place (WeirBlockStore *store, const WeirStoreFile *file, const WeirStoreFileDisk *disk,
    const gchar *path, GError **error)
{
  g_autoptr (WeirStoreFile) others = weir_store_file_new ();

  for (guint i = 0; i < file->disks->len; i++) {
    const WeirStoreFileDisk *other = &g_array_index (file->disks, WeirStoreFileDisk, i);

    if (other != disk || !g_str_equal (other->path, path))
      weir_store_file_add_disk (others, other->path);
  }
  return storedisks_check_place (others, store->path, path, error);
}

// Writes the new path. The store is locked.
static gboolean
set_path (Replace *self, WeirStoreFile *file, WeirStoreFileDisk *disk, int lock, GError **error)
{
  g_free (disk->path);
  disk->path = g_strdup (self->path);
  disk->removing = FALSE;
  return storedisks_end (self->up.store, file, lock, TRUE, error);
}

// Finds disk and new path, marks the new disk, and, if the old one is not there, puts the new one
// in its place at once. Stores the old disk's path if it is there; the caller frees it.
static gboolean
begin_replacing (Replace *self, const gchar *old, const gchar *path, gchar **old_path,
    gchar **warning, GError **error)
{
  WeirBlockStore *store = self->up.store;
  WeirStoreFileDisk *disk;
  WeirStoreFile *file;
  gboolean ok;
  int lock = storedisks_begin (store, &file, error);

  if (lock < 0)
    return FALSE;
  leftovers_clean (store);
  disk = find_disk (store, file, old, path, error);
  if (disk) {
    self->number = disk->number;
    self->path = weir_disk_resolve_for (path, store->id, disk->number, error);
  }
  ok = self->path && check_place (store, file, disk, self->path, error) && check_room (self, error);
  if (ok) {
    self->old_good = !g_str_equal (disk->path, self->path)
                     && weir_disk_is_there (disk->path, store->id, disk->number);
    *old_path = self->old_good ? g_strdup (disk->path) : NULL;
    if (warning)
      *warning = storedisks_dup_warning (store, self->path, self->number);
    ok = weir_disk_mark (self->path, store->id, self->number, error);
  }
  if (ok && !self->old_good)
    return set_path (self, file, disk, lock, error);
  storedisks_end (store, file, lock, FALSE, NULL);
  return ok;
}

// Waits until no title is being added or removed, whose copies may come to the old disk, and locks
// the store. Returns a descriptor, or -1.
static int
begin_quiet (Replace *self, WeirStoreFile **file, GError **error)
{
  gboolean told = FALSE;
  int lock;

  while ((lock = storedisks_begin (self->up.store, file, error)) >= 0
         && leftovers_any_busy (self->up.store)) {
    GPollFD poll;
    gboolean can = g_cancellable_make_pollfd (self->up.cancellable, &poll);

    storedisks_end (self->up.store, *file, lock, FALSE, NULL);
    if (!told)
      upkeep_report (&self->up, NULL, "waits until no title is being added or removed");
    told = TRUE;
    g_poll (&poll, can, BUSY_MS);
    if (can)
      g_cancellable_release_fd (self->up.cancellable);
    if (g_cancellable_set_error_if_cancelled (self->up.cancellable, error))
      return -1;
  }
  return lock;
}

// Copies what has come to the old disk since, and puts the new one in its place.
static gboolean
finish (Replace *self, const gchar *old_path, GError **error)
{
  WeirStoreFileDisk *disk = NULL;
  WeirStoreFile *file;
  int lock = begin_quiet (self, &file, error);

  if (lock < 0)
    return FALSE;
  self->up.result.lost_blocks = 0; // are found again
  disk = find_disk (self->up.store, file, old_path, self->path, error);
  if (!disk || !for_all (self, fill_title, TRUE, error)) {
    storedisks_end (self->up.store, file, lock, FALSE, NULL);
    return FALSE;
  }
  if (!set_path (self, file, disk, lock, error))
    return FALSE;
  weir_disk_unmark (old_path);
  return TRUE;
}

static gboolean
replace (Replace *self, const gchar *old, const gchar *path, gchar **warning, GError **error)
{
  g_autofree gchar *old_path = NULL;

  self->up.due_us = g_get_monotonic_time ();
  if (!begin_replacing (self, old, path, &old_path, warning, error)
      || !for_all (self, fill_title, old_path != NULL, error))
    return FALSE;
  return !old_path || finish (self, old_path, error);
}

gboolean
weir_block_store_replace_disk (WeirBlockStore *self, const gchar *old, const gchar *path,
    guint64 rate, WeirUpkeepFunc progress, gpointer data, GCancellable *cancellable,
    WeirUpkeepResult *result, gchar **warning, GError **error)
{
  Replace work = { .up = { self, progress, data, cancellable, .rate = rate } };
  int turn = balancing_begin (self, FALSE, cancellable, error);
  gboolean ok = turn >= 0 && replace (&work, old, path, warning, error);

  if (turn >= 0)
    close (turn);
  if (result)
    *result = work.up.result;
  g_free (work.path);
  return ok;
}
