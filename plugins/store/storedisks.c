// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/storedisks.h"

#include "store/balancing.h"
#include "store/files.h"
#include "store/leftovers.h"
#include "store/looking.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int
storedisks_begin (WeirBlockStore *store, WeirStoreFile **file, GError **error)
{
  int lock = store_lock (store, error);

  *file = NULL;
  if (lock < 0)
    return -1;
  *file = weir_store_file_read (store->path, error);
  if (*file)
    return lock;
  close (lock);
  return -1;
}

gboolean
storedisks_end (
    WeirBlockStore *store, WeirStoreFile *file, int lock, gboolean write, GError **error)
{
  gboolean ok = write && weir_store_file_write (file, store->path, error);

  close (lock);
  weir_store_file_free (file);
  store_refresh (store);
  return ok;
}

static WeirStoreFileDisk *
find_path (WeirStoreFile *file, const gchar *path)
{
  for (guint i = 0; i < file->disks->len; i++) {
    WeirStoreFileDisk *disk = &g_array_index (file->disks, WeirStoreFileDisk, i);

    if (g_str_equal (disk->path, path))
      return disk;
  }
  return NULL;
}

// A disk that is gone has no real path, and one that hangs is not to be asked for it.
WeirStoreFileDisk *
storedisks_find (WeirStoreFile *file, const gchar *path)
{
  g_autofree gchar *absolute = g_canonicalize_filename (path, NULL);
  WeirStoreFileDisk *found = find_path (file, absolute);
  gchar *resolved = found ? NULL : realpath (path, NULL);

  if (resolved)
    found = find_path (file, resolved);
  free (resolved);
  return found;
}

// Reports whether a folder is another one or lies in it.
static gboolean
is_in (const gchar *path, const gchar *folder)
{
  gsize n = strlen (folder);

  n -= n > 0 && folder[n - 1] == '/';
  return strncmp (path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

gboolean
storedisks_check_place (
    const WeirStoreFile *file, const gchar *dir, const gchar *path, GError **error)
{
  if (is_in (path, dir)) {
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK,
        "%s lies in the store's own folder; a disk needs a folder elsewhere", path);
    return FALSE;
  }
  for (guint i = 0; i < file->disks->len; i++) {
    const gchar *disk = g_array_index (file->disks, WeirStoreFileDisk, i).path;
    gboolean inside = is_in (path, disk);

    if (!inside && !is_in (disk, path))
      continue;
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK,
        "%s lies in %s; a disk cannot lie in another one", inside ? path : disk,
        inside ? disk : path);
    return FALSE;
  }
  return TRUE;
}

gchar *
storedisks_dup_warning (WeirBlockStore *store, const gchar *path, guint32 but)
{
  g_autofree WeirStoreDisk *disks = g_new (WeirStoreDisk, WEIR_STORE_DISKS_MAX);
  guint n = weir_block_store_get_disks (store, disks, WEIR_STORE_DISKS_MAX);
  g_autofree const gchar **paths = g_new (const gchar *, n + 1);
  g_autofree guint64 *devices = g_new (guint64, n + 1);
  WeirDiskSpace space;

  if (!weir_disk_get_space (path, &space))
    return NULL;
  for (guint i = 0; i < n; i++) {
    paths[i] = disks[i].path;
    devices[i] = disks[i].number == but ? 0 : disks[i].device;
  }
  paths[n] = path;
  devices[n] = space.device;
  return weir_disk_dup_warning (paths, devices, n + 1);
}

gboolean
weir_block_store_add_disk (WeirBlockStore *self, const gchar *path, gchar **warning, GError **error)
{
  g_autofree gchar *resolved = weir_disk_resolve (path, error);
  const WeirStoreFileDisk *same;
  WeirStoreFile *file;
  gboolean ok = FALSE;
  guint16 number;
  int lock;

  if (warning)
    *warning = NULL;
  if (!resolved || (lock = storedisks_begin (self, &file, error)) < 0)
    return FALSE;
  same = find_path (file, resolved);
  if (file->disks->len >= WEIR_STORE_DISKS_MAX)
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK, "the store has %d disks already",
        WEIR_STORE_DISKS_MAX);
  else if (same)
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK,
        "%s is disk %u of this store already; if that disk is dead, and this an empty one in its "
        "place, use replace-disk %s %s",
        path, same->number, path, path);
  else
    ok = storedisks_check_place (file, self->path, resolved, error);
  if (ok) {
    if (warning)
      *warning = storedisks_dup_warning (self, resolved, G_MAXUINT32);
    number = weir_store_file_add_disk (file, resolved);
    ok = balancing_set_due (self, error) && weir_disk_mark (resolved, self->id, number, error);
  }
  return storedisks_end (self, file, lock, ok, error);
}

// Checks that the policy has enough disks without those that are being removed.
static gboolean
check_rest (const WeirStoreFile *file, GError **error)
{
  g_autofree WeirPlacementDisk *disks = g_new0 (WeirPlacementDisk, file->disks->len);
  WeirPlacement placement;

  for (guint i = 0; i < file->disks->len; i++) {
    const WeirStoreFileDisk *disk = &g_array_index (file->disks, WeirStoreFileDisk, i);

    disks[i] = (WeirPlacementDisk) { disk->number, !disk->removing, 0 };
  }
  if (weir_placement_init (&placement, file->policy, disks, file->disks->len, 0) == 0)
    return TRUE;
  g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK,
      "policy %s needs more disks than would remain; add another disk first",
      weir_placement_name (file->policy));
  return FALSE;
}

gboolean
weir_block_store_remove_disk (WeirBlockStore *self, const gchar *path, GError **error)
{
  WeirStoreFileDisk *disk;
  WeirStoreFile *file;
  gboolean ok = FALSE;
  int lock = storedisks_begin (self, &file, error);

  if (lock < 0)
    return FALSE;
  disk = storedisks_find (file, path);
  if (disk) {
    disk->removing = TRUE;
    ok = check_rest (file, error) && balancing_set_due (self, error);
  } else {
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK, "store %s has no disk %s",
        self->path, path);
  }
  return storedisks_end (self, file, lock, ok, error);
}

/* Dropping */

typedef struct {
  guint64 *n_copies; // on each disk
  GHashTable *ids;   // of the titles
  gboolean complete;
} Search;

static gboolean
count_copies (const gchar *name, WeirStoredTitle *title, const GError *error, gpointer data)
{
  Search *search = data;
  gchar id[33];

  search->complete = search->complete && title;
  if (title) {
    store_print_id (title->index.id, id);
    g_hash_table_add (search->ids, g_strdup (id));
  }
  for (guint32 i = 0; title && i < title->index.n_blocks; i++) {
    for (guint j = 0; j < title->index.blocks[i].n_copies; j++)
      search->n_copies[title->index.blocks[i].disks[j]]++;
  }
  return TRUE;
}

// Removes what moves that were killed have left on a disk. Blocks of titles whose index may be lost
// stay.
static void
remove_leftovers (const Search *search, const gchar *path)
{
  g_autofree gchar *blocks = g_build_filename (path, "blocks", NULL);
  GDir *dir = g_dir_open (blocks, 0, NULL);
  const gchar *id;

  while (dir && (id = g_dir_read_name (dir))) {
    g_autofree gchar *folder = g_build_filename (blocks, id, NULL);

    if (g_hash_table_contains (search->ids, id))
      weir_files_remove_folder (folder);
  }
  if (dir)
    g_dir_close (dir);
}

// Says why a disk stays. (transfer full)
static gchar *
dup_reason (const Upkeep *up, const Search *search, guint64 n_copies)
{
  if (!search->complete || leftovers_any_busy (up->store))
    return g_strdup (
        "a title is being added, or has an index that cannot be read; run balance again "
        "then");
  if (up->result.no_room > 0)
    return g_strdup_printf ("the other disks have no room for %" G_GUINT64_FORMAT
                            " of its copies; add a disk and run balance again, or replace this one "
                            "(replace-disk)",
        n_copies);
  return g_strdup_printf (
      "%" G_GUINT64_FORMAT " of its copies could not be moved; run balance again", n_copies);
}

// Drops a disk if no index names it. Returns whether it did.
static gboolean
drop (Upkeep *up, const Search *search, WeirStoreFileDisk *disk)
{
  const guint64 n_copies = search->n_copies[disk->number];

  if (!disk->removing)
    return FALSE;
  if (!search->complete || leftovers_any_busy (up->store) || n_copies > 0) {
    g_autofree gchar *why = dup_reason (up, search, n_copies);
    g_autofree gchar *text =
        g_strdup_printf ("disk %u (%s) stays: %s", disk->number, disk->path, why);

    up->result.staying_disks++;
    upkeep_report (up, NULL, text);
    return FALSE;
  }
  if (weir_disk_is_there (disk->path, up->store->id, disk->number)) {
    remove_leftovers (search, disk->path);
    weir_disk_unmark (disk->path);
  }
  return TRUE;
}

// Drops the disks that can go. Returns how many did, and stores how many stay.
static guint
drop_all (Upkeep *up, WeirStoreFile *file, guint *n_stay)
{
  g_autofree guint64 *n_copies = g_new0 (guint64, G_MAXUINT16 + 1);
  g_autoptr (GHashTable) ids = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  Search search = { n_copies, ids, TRUE };
  guint n = 0;

  *n_stay = 0;
  leftovers_clean (up->store);
  if (!weir_block_store_list (up->store, count_copies, &search, NULL))
    search.complete = FALSE;
  for (guint i = file->disks->len; i-- > 0;) {
    WeirStoreFileDisk *disk = &g_array_index (file->disks, WeirStoreFileDisk, i);

    if (drop (up, &search, disk)) {
      g_array_remove_index (file->disks, i);
      n++;
    } else {
      *n_stay += disk->removing;
    }
  }
  return n;
}

gboolean
storedisks_drop (Upkeep *up, const gint64 balanced[3], GError **error)
{
  g_autofree gchar *path = g_build_filename (up->store->path, WEIR_STORE_FILE, NULL);
  WeirStoreFile *file;
  gint64 stamp[3];
  gboolean ok;
  guint n_stay;
  int lock = storedisks_begin (up->store, &file, error);

  if (lock < 0)
    return FALSE;
  store_get_stamp (path, stamp);
  ok = drop_all (up, file, &n_stay) == 0 || weir_store_file_write (file, up->store->path, error);
  if (ok && n_stay == 0 && balanced && memcmp (stamp, balanced, sizeof stamp) == 0)
    balancing_clear_due (up->store);
  storedisks_end (up->store, file, lock, FALSE, NULL);
  return ok;
}
