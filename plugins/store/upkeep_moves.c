// SPDX-License-Identifier: LGPL-2.1-or-later
// Changes of the places of copies. Several programs may do so at once: a change is made while the
// store is locked, and only if the index is as expected and the new copy is there.

#include "store/copies.h"
#include "store/space.h"
#include "store/upkeep_private.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

guint8 *
upkeep_read (WeirStoredTitle *title, guint32 number, gint32 but, GError **error)
{
  const WeirIndexBlock *block = &title->index.blocks[number];
  guint16 disks[WEIR_INDEX_COPIES_MAX];
  guint n = weir_stored_title_find_copies (title, number, disks, error);
  GError *problem = NULL;
  guint8 *bytes = NULL;
  gchar id[33];

  if (n == 0)
    return NULL;
  store_print_id (title->index.id, id);
  for (guint i = 0; !bytes && i < n; i++) {
    if (disks[i] == but)
      continue;
    g_clear_error (&problem);
    if (!store_reader_avoids (title->store, disks[i]))
      bytes = copies_read (title->store, id, number, block, disks[i], &problem);
    else
      g_set_error (
          &problem, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK, "disk %u is avoided", disks[i]);
  }
  if (!bytes)
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_CORRUPT,
        "block %u of '%s' has no other good copy%s%s", number, title->index.name,
        problem ? ": " : "", problem ? problem->message : "");
  g_clear_error (&problem);
  return bytes;
}

static gboolean
is_whole (WeirStoredTitle *title, const WeirIndexBlock *block, const UpkeepMove *move)
{
  g_autofree gchar *path = weir_stored_title_dup_block_path (title, move->number, move->to);
  struct stat st;

  return path && stat (path, &st) == 0
         && (guint64) st.st_size == (guint64) block->length + block->table_length;
}

static gboolean
names (const WeirIndexBlock *block, guint16 disk)
{
  return block->disks[0] == disk || (block->n_copies > 1 && block->disks[1] == disk);
}

static gboolean
apply (WeirStoredTitle *title, WeirIndex *index, const UpkeepMove *move)
{
  WeirIndexBlock *block;

  if (memcmp (index->id, title->index.id, sizeof index->id) != 0)
    return FALSE;
  block = &index->blocks[move->number];
  if (!names (block, move->from) || names (block, move->to) || !is_whole (title, block, move))
    return FALSE;
  block->disks[block->disks[0] == move->from ? 0 : 1] = move->to;
  return TRUE;
}

// Removes the copies of the block of a move that the index does not name, unless the disk fails or
// hangs: then they are leftovers, which repair removes.
static void
remove_unnamed (WeirStoredTitle *title, const WeirIndex *index, const UpkeepMove *move)
{
  gboolean same = memcmp (index->id, title->index.id, sizeof index->id) == 0;
  const WeirIndexBlock *block = same ? &index->blocks[move->number] : NULL;
  gchar id[33];

  store_print_id (title->index.id, id);
  if ((!block || !names (block, move->from)) && space_can_use (title->store, move->from))
    copies_remove (title->store, id, move->number, move->from);
  if (!block || !names (block, move->to))
    copies_remove (title->store, id, move->number, move->to);
}

// Removes the copies of the index from disks of the moves that have no block of the title any more.
static void
remove_indexes (WeirStoredTitle *title, const WeirIndex *index, const UpkeepMove *moves, guint n)
{
  gboolean same = memcmp (index->id, title->index.id, sizeof index->id) == 0;
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  gchar id[33];

  store_print_id (title->index.id, id);
  for (guint i = 0; i < 2 * n; i++) {
    const guint16 disk = i % 2 ? moves[i / 2].from : moves[i / 2].to;

    if (g_hash_table_add (seen, GUINT_TO_POINTER (disk))
        && (!same || !upkeep_uses_disk (index, disk)) && space_can_use (title->store, disk))
      copies_remove_index (title->store, id, disk);
  }
}

guint
upkeep_commit (WeirStoredTitle *title, const UpkeepMove *moves, guint n_moves, GError **error)
{
  int lock = store_lock (title->store, error);
  gint64 stamp[3];
  WeirIndex index;
  GError *problem = NULL;
  guint n = 0;

  if (lock < 0)
    return 0;
  if (!store_read_index (title->store, title->index.name, &index, stamp, &problem)) {
    // Without an index of that name, the title was removed with its blocks.
    if (!g_error_matches (problem, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NOT_FOUND)) {
      g_propagate_error (error, problem);
      close (lock);
      return 0;
    }
    g_clear_error (&problem);
  }
  for (guint i = 0; i < n_moves; i++)
    n += apply (title, &index, &moves[i]);
  if (n == 0 || store_write_index (title->store, &index, error)) {
    for (guint i = 0; i < n_moves; i++)
      remove_unnamed (title, &index, &moves[i]);
    remove_indexes (title, &index, moves, n_moves);
  } else {
    n = 0; // which index is there is not known, so that all copies stay
  }
  weir_index_clear (&index);
  close (lock);
  return n;
}

static gboolean
write_elsewhere (
    WeirStoredTitle *title, guint32 number, guint16 bad, const guint8 *bytes, GError **error)
{
  g_autofree WeirPlacementDisk *disks = g_new0 (WeirPlacementDisk, WEIR_STORE_DISKS_MAX);
  const WeirIndexBlock *block = &title->index.blocks[number];
  gsize length = (gsize) block->length + block->table_length;
  GError *problem = NULL;
  UpkeepMove move = { number, bad, 0 };
  guint n = space_get (title->store, disks), n_now;
  guint16 now[WEIR_INDEX_COPIES_MAX], other;
  WeirPlacement placement;
  guint n_others = 0;
  gint to = -1;
  gchar id[33];

  n_now = weir_stored_title_find_copies (title, number, now, error);
  if (n_now < 2)
    return FALSE;
  other = now[0] == bad ? now[1] : now[0];
  for (guint i = 0; i < n; i++) {
    disks[i].usable = disks[i].usable && disks[i].number != bad;
    n_others += disks[i].usable && disks[i].number != other;
  }
  if (title->store->policy == WEIR_PLACEMENT_RAID1 || n_others == 0) {
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK,
        title->store->policy == WEIR_PLACEMENT_RAID1
            ? "a title of policy raid1 stays on its pair of disks; mount or replace disk %u "
              "(replace-disk)"
            : "no third disk can be used; mount or replace disk %u (replace-disk)",
        bad);
    return FALSE;
  }
  if (weir_placement_init (&placement, WEIR_PLACEMENT_RANDOM, disks, n, g_random_int ()) == 0)
    to = weir_placement_copy (&placement, length, other);
  if (to < 0) {
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NO_SPACE,
        "no other disk has room for a copy of block %u of '%s'", number, title->index.name);
    return FALSE;
  }
  store_print_id (title->index.id, id);
  move.to = (guint16) to;
  // A move that no longer fits is no failure.
  if (copies_write (title->store, id, number, move.to, bytes, length, TRUE, &problem)) {
    copies_add_index (title->store, &title->index, move.to, NULL); // or repair does
    upkeep_commit (title, &move, 1, &problem);
  }
  if (problem)
    g_propagate_error (error, problem);
  return problem == NULL;
}

gboolean
upkeep_rewrite (
    WeirStoredTitle *title, guint32 number, guint16 bad, const guint8 *bytes, GError **error)
{
  const WeirIndexBlock *block = &title->index.blocks[number];
  guint16 now[WEIR_INDEX_COPIES_MAX];
  gchar id[33];

  store_print_id (title->index.id, id);
  if (!space_can_use (title->store, bad)
      || !copies_write (title->store, id, number, bad, bytes,
          (gsize) block->length + block->table_length, TRUE, NULL))
    return write_elsewhere (title, number, bad, bytes, error);
  copies_add_index (title->store, &title->index, bad, NULL); // or repair does
  // If the title was removed meanwhile, so is this copy.
  if (weir_stored_title_find_copies (title, number, now, error) > 0)
    return TRUE;
  copies_remove (title->store, id, number, bad);
  copies_remove_index (title->store, id, bad);
  return FALSE;
}

gboolean
weir_block_store_repair_block (
    WeirStoredTitle *title, guint32 number, guint16 bad_disk, GError **error)
{
  guint16 now[WEIR_INDEX_COPIES_MAX];
  guint n = weir_stored_title_find_copies (title, number, now, error);
  g_autofree guint8 *bytes = NULL;

  if (n == 0)
    return FALSE;
  if (now[0] != bad_disk && (n < 2 || now[1] != bad_disk))
    return TRUE;
  bytes = upkeep_read (title, number, bad_disk, error);
  return bytes && upkeep_rewrite (title, number, bad_disk, bytes, error);
}
