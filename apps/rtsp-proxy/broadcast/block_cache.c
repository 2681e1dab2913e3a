// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broadcast/block_cache.h"

#include <errno.h>

#include "base/threads.h"

#define READERS 4 // threads

struct _BlockCache {
  gatomicrefcount refs; // each block has one
  GThreadPool *readers;

  GMutex lock; // protects the fields below, and those of the blocks
  GCond read;
  GHashTable *blocks; // by key
  WeirPolicy policy;
  BlockCacheStats stats;
};

struct _PacketBlock {
  guint64 key; // number of the file, number of the block
  BlockCache *cache;
  guint refs;
  gboolean held;    // by the policy
  gint state;       // atomic: 0, -EAGAIN or another errno
  PacketFile *file; // while it is read
  GBytes *bytes;
};

static void read_block (gpointer data, gpointer cache);

BlockCache *
block_cache_new (guint64 bytes, WeirPolicyRule rule)
{
  BlockCache *self = g_new0 (BlockCache, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  g_cond_init (&self->read);
  self->blocks = g_hash_table_new (g_int64_hash, g_int64_equal);
  weir_policy_init (&self->policy, rule, bytes);
  self->readers = g_thread_pool_new (read_block, self, READERS, FALSE, NULL);
  return self;
}

BlockCache *
block_cache_ref (BlockCache *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

static void
free_block (PacketBlock *self)
{
  g_clear_pointer (&self->file, packet_file_unref);
  g_clear_pointer (&self->bytes, g_bytes_unref);
  g_free (self);
}

void
block_cache_unref (BlockCache *self)
{
  GHashTableIter iter;
  gpointer block;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  // Blocks that are left are held only.
  g_hash_table_iter_init (&iter, self->blocks);
  while (g_hash_table_iter_next (&iter, NULL, &block))
    free_block (block);
  // This may be a thread of the pool, so it cannot wait for it.
  g_thread_pool_free (self->readers, FALSE, FALSE);
  g_hash_table_unref (self->blocks);
  weir_policy_free (&self->policy);
  g_cond_clear (&self->read);
  g_mutex_clear (&self->lock);
  g_free (self);
}

// ---- with the lock ----

// Takes a block that nobody needs out of the table. Returns it for free_block(), or NULL.
static PacketBlock *
drop_if_unused (PacketBlock *self)
{
  if (self->refs > 0 || self->held)
    return NULL;
  g_hash_table_remove (self->cache->blocks, &self->key);
  return self;
}

// Adds a block that is in memory to those that the policy holds, and lists those to be freed.
static GSList *
hold (PacketBlock *block, GSList *unused)
{
  BlockCache *self = block->cache;
  uint64_t key;

  if (weir_policy_add (&self->policy, block->key, g_bytes_get_size (block->bytes)) < 0)
    return unused;
  block->held = TRUE;
  while (weir_policy_evict (&self->policy, &key)) {
    PacketBlock *evicted = g_hash_table_lookup (self->blocks, &key);

    evicted->held = FALSE;
    if (drop_if_unused (evicted))
      unused = g_slist_prepend (unused, evicted);
  }
  return unused;
}

static void
free_unused (GSList *unused)
{
  g_slist_free_full (unused, (GDestroyNotify) free_block);
}

// ---- blocks ----

guint32
packet_block_number (const PacketBlock *self)
{
  return (guint32) self->key;
}

gint
packet_block_get (PacketBlock *self, GBytes **bytes)
{
  const gint state = g_atomic_int_get (&self->state);

  if (state == 0)
    *bytes = self->bytes;
  return state;
}

gint
packet_block_wait (PacketBlock *self, GBytes **bytes)
{
  g_mutex_lock (&self->cache->lock);
  while (g_atomic_int_get (&self->state) == -EAGAIN)
    g_cond_wait (&self->cache->read, &self->cache->lock);
  g_mutex_unlock (&self->cache->lock);
  return packet_block_get (self, bytes);
}

void
packet_block_unref (PacketBlock *self)
{
  BlockCache *cache = self ? self->cache : NULL;
  PacketBlock *unused;

  if (!self)
    return;
  g_mutex_lock (&cache->lock);
  self->refs--;
  unused = drop_if_unused (self);
  g_mutex_unlock (&cache->lock);
  if (unused)
    free_block (unused);
  block_cache_unref (cache);
}

// ---- reading ----

// Drops a block that waited for a thread for so long that nobody wants it any more: a disk that is
// too slow for all blocks reads those that can still be sent.
static gboolean
drop_if_unwanted (PacketBlock *self)
{
  BlockCache *cache = self->cache;
  PacketBlock *unused = NULL;

  g_mutex_lock (&cache->lock);
  if (self->refs == 1) { // that of read_block()
    self->refs = 0;
    unused = drop_if_unused (self);
  }
  g_mutex_unlock (&cache->lock);
  if (unused)
    free_block (unused);
  return unused != NULL;
}

static void
read_and_keep (BlockCache *owner, PacketBlock *self)
{
  const guint32 number = packet_block_number (self);
  const gsize length = packet_file_block_bytes (self->file, number);
  g_autofree guint8 *bytes = g_malloc (length);
  gint failed;
  GSList *unused = NULL;

  failed = packet_file_read (self->file, number, bytes);
  g_clear_pointer (&self->file, packet_file_unref);
  g_mutex_lock (&owner->lock);
  owner->stats.bytes_read += failed ? 0 : length;
  if (!failed) {
    self->bytes = g_bytes_new_take (g_steal_pointer (&bytes), length);
    unused = hold (self, unused);
  }
  g_atomic_int_set (&self->state, failed);
  g_cond_broadcast (&owner->read);
  // Before others know of the end, so that a block that they leave is not in use here.
  self->refs--;
  if (drop_if_unused (self))
    unused = g_slist_prepend (unused, self);
  g_mutex_unlock (&owner->lock);
  free_unused (unused);
}

static void
read_block (gpointer data, gpointer cache)
{
  PacketBlock *self = data;
  BlockCache *owner = cache;

  thread_set_name ("broadcast-disk");
  if (!drop_if_unwanted (self))
    read_and_keep (owner, self);
  thread_set_name (THREAD_IDLE);
  block_cache_unref (owner);
}

static PacketBlock *
add_block (BlockCache *self, PacketFile *file, guint64 key)
{
  PacketBlock *block = g_new0 (PacketBlock, 1);

  block->key = key;
  block->cache = self;
  block->file = packet_file_ref (file);
  block->state = -EAGAIN;
  g_hash_table_insert (self->blocks, &block->key, block);
  return block;
}

static guint64
key_of (const PacketFile *file, guint32 number)
{
  return (guint64) file->number << 32 | number;
}

PacketBlock *
block_cache_ask (BlockCache *self, PacketFile *file, guint32 number)
{
  const guint64 key = key_of (file, number);
  gboolean is_new = FALSE;
  GSList *unused = NULL;
  PacketBlock *block;

  g_mutex_lock (&self->lock);
  weir_policy_ask (&self->policy, key);
  self->stats.asked++;
  block = g_hash_table_lookup (self->blocks, &key);
  // A block that could not be read is tried again when nobody uses it any more.
  if (block) {
    self->stats.hits++;
  } else {
    is_new = TRUE;
    block = add_block (self, file, key);
    block->refs++; // of read_block()
    block_cache_ref (self);
  }
  block->refs++;
  block_cache_ref (self);
  if (!block->held && g_atomic_int_get (&block->state) == 0)
    unused = hold (block, unused);
  g_mutex_unlock (&self->lock);
  free_unused (unused);
  if (is_new)
    g_thread_pool_push (self->readers, block, NULL);
  return block;
}

void
block_cache_forget (BlockCache *self, const PacketFile *file)
{
  GSList *unused = NULL;

  g_mutex_lock (&self->lock);
  for (guint32 i = 0; i < file->n_blocks; i++) {
    const guint64 key = key_of (file, i);
    PacketBlock *block = g_hash_table_lookup (self->blocks, &key);

    weir_policy_remove (&self->policy, key);
    if (block) {
      block->held = FALSE;
      if (drop_if_unused (block))
        unused = g_slist_prepend (unused, block);
    }
  }
  g_mutex_unlock (&self->lock);
  free_unused (unused);
}

void
block_cache_get_stats (BlockCache *self, BlockCacheStats *stats)
{
  g_mutex_lock (&self->lock);
  *stats = self->stats;
  g_mutex_unlock (&self->lock);
}
