// SPDX-License-Identifier: LGPL-2.1-or-later
// The copies of the indexes. Each disk that has blocks of a title has a copy of its index beside
// them, as it was when the first of them came. What has changed since is where the blocks lie,
// which the disks themselves tell. So an index that is lost is made anew.

#include "store/copies.h"
#include "store/leftovers.h"
#include "store/upkeep_private.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- looking for them ----

static gboolean
uses (const WeirIndex *index, guint16 disk)
{
  for (guint32 i = 0; i < index->n_blocks; i++) {
    const WeirIndexBlock *block = &index->blocks[i];

    if (block->disks[0] == disk || (block->n_copies > 1 && block->disks[1] == disk))
      return TRUE;
  }
  return FALSE;
}

gboolean
upkeep_uses_disk (const WeirIndex *index, guint16 disk)
{
  return uses (index, disk);
}

// Reads the copy of the index of the title with this id from a disk that is there.
static gboolean
read_copy (const gchar *disk, const gchar *id, WeirIndex *index)
{
  g_autofree gchar *path = copies_index_path (disk, id);
  gchar found[33];

  if (!store_read_index_file (path, index, NULL))
    return FALSE;
  store_print_id (index->id, found);
  if (g_str_equal (found, id))
    return TRUE;
  weir_index_clear (index);
  return FALSE;
}

guint
upkeep_check_indexes (
    WeirBlockStore *store, const gchar *name, const WeirStoreDisk *disks, guint n, gboolean repair)
{
  WeirStoredTitle *title = weir_block_store_open_title (store, name, NULL);
  guint n_bad = 0;
  gchar id[33];

  if (!title) // removed meanwhile
    return 0;
  store_print_id (title->index.id, id);
  for (guint i = 0; i < n; i++) {
    WeirIndex copy = { 0 };

    if (!disks[i].present || !uses (&title->index, disks[i].number))
      continue;
    if (read_copy (disks[i].path, id, &copy))
      weir_index_clear (&copy);
    else
      n_bad += !repair || !copies_write_index (disks[i].path, &title->index, NULL);
  }
  weir_stored_title_unref (title);
  return n_bad;
}

typedef gboolean (*FolderFunc) (const WeirStoreDisk *disk, const gchar *id, gpointer data);

// Calls `func` for the folders of blocks on all disks that are there, until it returns FALSE.
static void
for_folders (WeirBlockStore *store, FolderFunc func, gpointer data)
{
  g_autofree WeirStoreDisk *disks = g_new (WeirStoreDisk, WEIR_STORE_DISKS_MAX);
  guint n = weir_block_store_get_disks (store, disks, WEIR_STORE_DISKS_MAX);
  gboolean more = TRUE;

  for (guint i = 0; more && i < n; i++) {
    g_autofree gchar *blocks = g_build_filename (disks[i].path, "blocks", NULL);
    GDir *dir = disks[i].present ? g_dir_open (blocks, 0, NULL) : NULL;
    const gchar *id;

    while (more && dir && (id = g_dir_read_name (dir)))
      more = func (&disks[i], id, data);
    if (dir)
      g_dir_close (dir);
  }
}

typedef struct {
  const gchar *name;
  gchar *id; // of 33 bytes
  gboolean found;
} NameSearch;

static gboolean
compare_name (const WeirStoreDisk *disk, const gchar *id, gpointer data)
{
  NameSearch *search = data;
  WeirIndex index;

  if (!read_copy (disk->path, id, &index))
    return TRUE;
  search->found = g_str_equal (index.name, search->name);
  if (search->found)
    g_strlcpy (search->id, id, 33);
  weir_index_clear (&index);
  return !search->found;
}

gboolean
upkeep_find_id (WeirBlockStore *store, const gchar *name, gchar id[33])
{
  NameSearch search = { name, id, FALSE };

  for_folders (store, compare_name, &search);
  return search.found;
}

// ---- making indexes anew ----

typedef struct {
  Upkeep *up;
  GHashTable *known;      // ids of the titles
  GHashTable *unreadable; // names whose index is there, but cannot be read and must stay
  GHashTable *corrupt;    // names whose index is not valid
  GHashTable *lost;       // id: WeirIndex, from a copy
} Restore;

static gboolean
note_title (const gchar *name, WeirStoredTitle *title, const GError *error, gpointer data)
{
  Restore *self = data;
  gchar id[33];

  if (title) {
    store_print_id (title->index.id, id);
    g_hash_table_add (self->known, g_strdup (id));
  } else {
    g_hash_table_add (g_error_matches (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_CORRUPT)
                          ? self->corrupt
                          : self->unreadable,
        g_strdup (name));
  }
  return TRUE;
}

static gboolean
note_copy (const WeirStoreDisk *disk, const gchar *id, gpointer data)
{
  Restore *self = data;
  WeirIndex index;

  if (g_hash_table_contains (self->known, id) || g_hash_table_contains (self->lost, id)
      || leftovers_is_noted (self->up->store, id) || !read_copy (disk->path, id, &index))
    return TRUE;
  g_hash_table_insert (self->lost, g_strdup (id), g_memdup2 (&index, sizeof index));
  return TRUE;
}

static void
free_index (gpointer index)
{
  weir_index_clear (index);
  g_free (index);
}

static gboolean
has_block (const WeirStoreDisk *disk, const gchar *id, guint32 number, const WeirIndexBlock *block)
{
  g_autofree gchar *folder = store_blocks_path (disk->path, id);
  g_autofree gchar *path = g_strdup_printf ("%s/%08x", folder, number);
  struct stat st;

  return disk->present && stat (path, &st) == 0
         && (guint64) st.st_size == (guint64) block->length + block->table_length;
}

// Sets where a block lies. A copy that is on no disk gets the place that it had, so that repair
// writes it there.
static void
find_places (
    WeirIndexBlock *block, guint32 number, const gchar *id, const WeirStoreDisk *disks, guint n)
{
  guint16 places[WEIR_INDEX_COPIES_MAX];
  guint n_found = 0;

  // The places that it had come first.
  for (guint pass = 0; pass < 2; pass++) {
    for (guint i = 0; i < n && n_found < block->n_copies; i++) {
      gboolean had = disks[i].number == block->disks[0]
                     || (block->n_copies > 1 && disks[i].number == block->disks[1]);

      if (had == (pass == 0) && has_block (&disks[i], id, number, block))
        places[n_found++] = disks[i].number;
    }
  }
  if (n_found == 1 && block->n_copies == 2)
    places[n_found++] = block->disks[0] == places[0] ? block->disks[1] : block->disks[0];
  if (n_found == block->n_copies)
    memcpy (block->disks, places, n_found * sizeof *places);
}

// Writes an index anew. The store is locked.
static void
restore_title (Restore *self, const gchar *id, WeirIndex *index)
{
  g_autofree WeirStoreDisk *disks = g_new (WeirStoreDisk, WEIR_STORE_DISKS_MAX);
  guint n = weir_block_store_get_disks (self->up->store, disks, WEIR_STORE_DISKS_MAX);
  g_autofree gchar *path = store_index_path (self->up->store, index->name);
  g_autoptr (GError) error = NULL;

  if (g_hash_table_contains (self->unreadable, index->name)
      || (access (path, F_OK) == 0 && !g_hash_table_contains (self->corrupt, index->name)))
    return; // another title has the name
  for (guint32 i = 0; i < index->n_blocks; i++)
    find_places (&index->blocks[i], i, id, disks, n);
  if (store_write_index (self->up->store, index, &error)) {
    self->up->result.restored++;
    g_hash_table_remove (self->corrupt, index->name);
  }
  upkeep_report (self->up, index->name,
      error ? error->message : "its index was lost, and was made anew from a copy on the disks");
}

gboolean
upkeep_restore (Upkeep *up, GError **error)
{
  Restore self = { .up = up };
  int lock = store_lock (up->store, error);
  GHashTableIter iter;
  gpointer id, index;
  gboolean ok;

  if (lock < 0)
    return FALSE;
  self.known = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self.unreadable = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self.corrupt = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self.lost = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, free_index);
  ok = store_make_folders (up->store, error);
  if (ok) {
    up->result.leftovers += leftovers_clean (up->store);
    ok = weir_block_store_list (up->store, note_title, &self, error);
  }
  if (ok) {
    for_folders (up->store, note_copy, &self);
    g_hash_table_iter_init (&iter, self.lost);
    while (g_hash_table_iter_next (&iter, &id, &index))
      restore_title (&self, id, index);
  }
  g_hash_table_unref (self.known);
  g_hash_table_unref (self.unreadable);
  g_hash_table_unref (self.corrupt);
  g_hash_table_unref (self.lost);
  close (lock);
  return ok;
}
