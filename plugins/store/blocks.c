// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/reader.h"

#include <string.h>
#include <xxhash.h>

#define KEPT_SHARE 8 // part of the memory bound for extents without a block

struct _WeirBlock {
  gint refs; // atomic; becomes 0 and leaves 0 with the reader's lock only
  WeirBlockReader *reader;
  WeirBlockName name;
  gboolean held; // by the policy
  gint sent;     // atomic: somebody may have sent it with sendfile()
  WeirExtent *extent;
  gsize length, table_length;
};

void
weir_blocks_name (WeirBlockName *name, const WeirIndex *index, guint32 number)
{
  memset (name, 0, sizeof *name);
  memcpy (name->id, index->id, sizeof name->id);
  name->number = number;
  name->key = XXH3_64bits_withSeed (name->id, sizeof name->id, number);
}

static gboolean
same_name (const WeirBlockName *a, const WeirBlockName *b)
{
  return a->number == b->number && memcmp (a->id, b->id, sizeof a->id) == 0;
}

WeirBlock *
weir_blocks_find (WeirBlockReader *self, const WeirBlockName *name)
{
  WeirBlock *block = g_hash_table_lookup (self->blocks, &name->key);

  if (!block || !same_name (&block->name, name))
    return NULL;
  if (g_atomic_int_add (&block->refs, 1) == 0)
    weir_block_reader_ref (self);
  return block;
}

static WeirExtent *
free_block (WeirBlockReader *self, WeirBlock *block)
{
  WeirExtent *extent = block->extent, *drop;

  if (g_hash_table_lookup (self->blocks, &block->name.key) == block)
    g_hash_table_remove (self->blocks, &block->name.key);
  // sendfile() does not copy: until the peer has acknowledged the bytes, the kernel may send them
  // again from their pages. So these pages get no other block.
  if (block->sent) {
    self->extents.used_bytes -= extent->size;
    drop = extent;
  } else {
    drop = weir_blocks_put_extent (self, extent);
  }
  g_free (block);
  return drop;
}

WeirBlock *
weir_blocks_add (WeirBlockReader *self, const WeirBlockRead *read, WeirExtent *extent)
{
  WeirBlock *block = g_new0 (WeirBlock, 1);

  block->refs = 1;
  block->reader = weir_block_reader_ref (self);
  block->name = read->name;
  block->extent = extent;
  block->length = read->block.length;
  block->table_length = read->block.table_length;
  // Another block with this key cannot be told from it by the policy, so this one is not kept.
  if (!g_hash_table_contains (self->blocks, &block->name.key)) {
    g_hash_table_insert (self->blocks, &block->name.key, block);
    block->held = weir_policy_add (&self->policy, block->name.key, extent->size) == 0;
  }
  return block;
}

WeirExtent *
weir_blocks_evict (WeirBlockReader *self)
{
  WeirExtent *list = NULL;
  guint64 key;

  self->policy.capacity = self->memory - self->memory / KEPT_SHARE;
  while (weir_policy_evict (&self->policy, &key)) {
    WeirBlock *block = g_hash_table_lookup (self->blocks, &key);

    block->held = FALSE;
    if (block->refs == 0) {
      WeirExtent *extent = free_block (self, block);
      if (extent) {
        extent->next = list;
        list = extent;
      }
    }
  }
  return list;
}

WeirExtent *
weir_blocks_put_extent (WeirBlockReader *self, WeirExtent *extent)
{
  const guint64 held = MIN (self->policy.bytes, self->memory);

  return weir_extents_put (&self->extents, extent, self->memory - held);
}

WeirBlock *
weir_block_ref (WeirBlock *self)
{
  g_atomic_int_inc (&self->refs);
  return self;
}

void
weir_block_unref (WeirBlock *self)
{
  WeirBlockReader *reader = self->reader;
  WeirExtent *drop = NULL;
  gboolean last;

  g_mutex_lock (&reader->lock);
  last = g_atomic_int_dec_and_test (&self->refs);
  if (last && !self->held)
    drop = free_block (reader, self);
  g_mutex_unlock (&reader->lock);
  weir_extents_drop (&reader->extents, drop);
  if (last)
    weir_block_reader_unref (reader);
}

const guint8 *
weir_block_get_bytes (WeirBlock *self, gsize *length)
{
  if (length)
    *length = self->length;
  return self->extent->bytes;
}

const guint8 *
weir_block_get_table (WeirBlock *self, gsize *length)
{
  if (length)
    *length = self->table_length;
  return self->extent->bytes + self->length;
}

int
weir_block_get_fd (WeirBlock *self, off_t *offset)
{
  g_atomic_int_set (&self->sent, 1);
  *offset = self->extent->offset;
  return self->reader->extents.fd;
}

void
weir_block_store_set_memory (WeirBlockStore *store, guint64 bytes)
{
  WeirBlockReader *self = weir_block_reader_get (store);
  WeirExtent *evicted, *kept;

  g_mutex_lock (&self->lock);
  self->memory = bytes;
  evicted = weir_blocks_evict (self);
  kept = weir_extents_trim (&self->extents, bytes - MIN (self->policy.bytes, bytes));
  g_mutex_unlock (&self->lock);
  weir_extents_drop (&self->extents, evicted);
  weir_extents_drop (&self->extents, kept);
}
