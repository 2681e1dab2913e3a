// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/writing.h"

#include "store/blockstore_private.h"
#include "store/copies.h"
#include "store/files.h"
#include "store/leftovers.h"
#include "store/space.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define S G_GINT64_CONSTANT (1000000000)

struct _WeirTitleWriter {
  WeirBlockStore *store;
  WeirIndex index; // its blocks are those of `blocks`
  GArray *blocks;  // of WeirIndexBlock
  gchar id[33];
  int fd; // of the title's file in adding/, -1 if there is none
  gboolean finished;
  WeirPlacement placement;
  WeirPlacementDisk *disks;
};

static gboolean
check_new (WeirBlockStore *store, const gchar *name, GError **error)
{
  g_autofree gchar *path = store_index_path (store, name);

  if (access (path, F_OK) < 0)
    return TRUE;
  g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_EXISTS,
      "the store has a title '%s' already; remove it or choose another name", name);
  return FALSE;
}

gboolean
weir_title_writer_check_name (WeirBlockStore *store, const gchar *name, GError **error)
{
  return store_check_name (name, error) && check_new (store, name, error);
}

gboolean
weir_title_writer_check_space (WeirBlockStore *store, const guint64 *bytes, gsize n, GError **error)
{
  int lock = store_lock (store, error);

  if (lock < 0)
    return FALSE;
  leftovers_clean (store);
  close (lock);
  return space_check (store, bytes, n, error);
}

static gboolean
place_title (WeirTitleWriter *self, guint64 expected_bytes, GError **error)
{
  self->disks = g_new0 (WeirPlacementDisk, WEIR_STORE_DISKS_MAX);
  if (!space_begin (self->store, &self->placement, self->disks, error))
    return FALSE;
  self->placement.remainder = expected_bytes;
  return TRUE;
}

// Locks the store, removes what killed writers have left, and begins.
static gboolean
begin_title (WeirTitleWriter *self, guint64 expected_bytes, GError **error)
{
  const gchar *name = self->index.name;
  int lock = store_lock (self->store, error);

  if (lock < 0)
    return FALSE;
  leftovers_clean (self->store);
  if (check_new (self->store, name, error) && place_title (self, expected_bytes, error)
      && space_check (self->store, &expected_bytes, 1, error))
    self->fd = leftovers_begin (self->store, self->id, name, error);
  close (lock);
  return self->fd >= 0;
}

WeirTitleWriter *
weir_title_writer_new (WeirBlockStore *store, const gchar *name, const gchar *caps,
    guint64 expected_bytes, GError **error)
{
  WeirTitleWriter *self;

  if (!store_check_name (name, error))
    return NULL;
  self = g_new0 (WeirTitleWriter, 1);
  self->store = weir_block_store_ref (store);
  self->fd = -1;
  self->index.name = strdup (name);
  self->index.caps = strdup (caps ? caps : "");
  self->index.slice_ns = weir_block_store_get_slice (store);
  for (guint i = 0; i < sizeof self->index.id; i++)
    self->index.id[i] = (guint8) g_random_int_range (0, 256);
  store_print_id (self->index.id, self->id);
  self->blocks = g_array_new (FALSE, TRUE, sizeof (WeirIndexBlock));
  if (begin_title (self, expected_bytes, error))
    return self;
  weir_title_writer_free (self);
  return NULL;
}

void
weir_title_writer_leave_room (WeirTitleWriter *self, guint64 bytes)
{
  self->placement.remainder += bytes;
}

static WeirPlacementDisk *
find_disk (WeirTitleWriter *self, guint16 number)
{
  for (gsize i = 0; i < self->placement.n_disks; i++) {
    if (self->disks[i].number == number)
      return &self->disks[i];
  }
  return NULL;
}

// Chooses disks and writes the copies. Returns FALSE with `retry` set if a disk failed, which gets
// no more blocks of this title.
static gboolean
write_copies (WeirTitleWriter *self, const guint8 *bytes, gsize length, WeirIndexBlock *block,
    gboolean *retry, GError **error)
{
  int n = weir_placement_next (&self->placement, length, block->disks);

  if (n < 0) {
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NO_SPACE,
        "no room for '%s': the disks are full after %" G_GUINT64_FORMAT " bytes of it",
        self->index.name, self->index.bytes);
    return FALSE;
  }
  block->n_copies = (guint8) n;
  for (int i = 0; i < n; i++) {
    if (copies_write (
            self->store, self->id, self->blocks->len, block->disks[i], bytes, length, FALSE, error))
      continue;
    find_disk (self, block->disks[i])->usable = FALSE;
    self->placement.remainder += length;
    for (int j = 0; j < i; j++)
      copies_remove (self->store, self->id, self->blocks->len, block->disks[j]);
    *retry = TRUE;
    return FALSE;
  }
  return TRUE;
}

gboolean
weir_title_writer_add_block (WeirTitleWriter *self, const guint8 *bytes, gsize length,
    gsize table_length, gint64 time_ns, WeirIndexBlockFlags flags, GError **error)
{
  WeirIndexBlock block = { .offset = self->index.bytes,
    .length = (guint32) length,
    .table_length = (guint32) table_length,
    .time_ns = time_ns,
    .flags = (guint8) flags };
  GError *problem = NULL, *first = NULL;
  gboolean retry, ok;

  if (length == 0 || length > WEIR_INDEX_BLOCK_BYTES_MAX
      || table_length > WEIR_INDEX_BLOCK_BYTES_MAX - length
      || self->blocks->len == WEIR_INDEX_BLOCKS_MAX) {
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_FAILED,
        "'%s' has a block of %" G_GSIZE_FORMAT " bytes or more than %u blocks; a block has 1 to %u "
        "bytes",
        self->index.name, length + table_length, WEIR_INDEX_BLOCKS_MAX, WEIR_INDEX_BLOCK_BYTES_MAX);
    return FALSE;
  }
  block.hash = XXH3_64bits (bytes, length + table_length);
  do {
    retry = FALSE;
    ok = write_copies (self, bytes, length + table_length, &block, &retry, &problem);
    // If no disk is left, the reason of the first failure tells more than that.
    if (!ok && !first)
      first = g_steal_pointer (&problem);
    g_clear_error (&problem);
  } while (retry);
  if (ok) {
    g_clear_error (&first);
    g_array_append_val (self->blocks, block);
    self->index.bytes += length;
  } else {
    g_propagate_error (error, first);
  }
  return ok;
}

// Writes copies of the index to the disks, and makes the folders of the blocks durable.
static gboolean
sync_disks (WeirTitleWriter *self, GError **error)
{
  g_autoptr (GHashTable) used = g_hash_table_new (NULL, NULL);
  GHashTableIter iter;
  gpointer disk;

  for (guint i = 0; i < self->blocks->len; i++) {
    const WeirIndexBlock *block = &g_array_index (self->blocks, WeirIndexBlock, i);

    for (guint j = 0; j < block->n_copies; j++)
      g_hash_table_add (used, GUINT_TO_POINTER (block->disks[j]));
  }
  g_hash_table_iter_init (&iter, used);
  while (g_hash_table_iter_next (&iter, &disk, NULL)) {
    const guint16 number = (guint16) GPOINTER_TO_UINT (disk);

    if (!copies_add_index (self->store, &self->index, number, error)
        || !copies_sync (self->store, self->id, number, error))
      return FALSE;
  }
  return TRUE;
}

gboolean
weir_title_writer_finish (WeirTitleWriter *self, guint64 rate, gint64 duration_ns, GError **error)
{
  g_autofree gchar *path = store_index_path (self->store, self->index.name);
  int lock;

  if (self->blocks->len == 0) {
    g_set_error (
        error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_FAILED, "title '%s' is empty", self->index.name);
    return FALSE;
  }
  if (rate == 0 && duration_ns > 0)
    rate = (guint64) ((gdouble) self->index.bytes * 8 * S / (gdouble) duration_ns);
  self->index.rate = rate;
  self->index.duration_ns = duration_ns;
  self->index.n_blocks = self->blocks->len;
  self->index.blocks = (WeirIndexBlock *) (gpointer) self->blocks->data;
  if (!sync_disks (self, error))
    return FALSE;
  lock = store_lock (self->store, error);
  if (lock < 0)
    return FALSE;
  if (check_new (self->store, self->index.name, error)) {
    self->finished = store_write_index (self->store, &self->index, error);
    if (!self->finished)
      unlink (path); // if it is there, it is not durable
  }
  close (lock);
  return self->finished;
}

// Removes what was written. If a disk has gone meanwhile, the title's file in adding/ stays, so
// that the next writer removes the rest.
static void
undo (WeirTitleWriter *self)
{
  guint64 n_removed = 0;

  if (leftovers_remove_blocks (self->store, self->id, &n_removed))
    leftovers_end (self->store, self->id, self->fd);
  else
    close (self->fd);
}

void
weir_title_writer_free (WeirTitleWriter *self)
{
  if (self->fd >= 0 && self->finished)
    leftovers_end (self->store, self->id, self->fd);
  else if (self->fd >= 0)
    undo (self);
  self->index.blocks = NULL;
  weir_index_clear (&self->index);
  g_array_unref (self->blocks);
  g_free (self->disks);
  weir_block_store_unref (self->store);
  g_free (self);
}
