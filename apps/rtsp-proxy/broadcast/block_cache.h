// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The blocks of packet files in memory: those that are asked for, and within a bound those that are
// asked for most often. Threads of the cache read blocks, so asking for a block does not wait for a
// disk. Call from any thread.
//
// For a periodic broadcast, LFU needs the fewest reads: it keeps the first segments, which are sent
// most often (Bradshaw et al., appendix A).

#include "broadcast/packet_file.h"
#include "window/policy.h"

typedef struct _BlockCache BlockCache;
typedef struct _PacketBlock PacketBlock;

// Makes a cache (transfer full) that keeps up to `bytes` bytes by a rule: WEIR_POLICY_LFU, or
// WEIR_POLICY_LRU to compare. Blocks that are in use do not count.
BlockCache *block_cache_new (guint64 bytes, WeirPolicyRule rule);
BlockCache *block_cache_ref (BlockCache *self);
void block_cache_unref (BlockCache *self);

// Counts a request for a block of `file` and returns it (transfer full). Reads it if it is not in
// memory, unless it is given back before a thread comes to read it.
PacketBlock *block_cache_ask (BlockCache *self, PacketFile *file, guint32 number);

// Forgets all blocks of a file that nobody uses.
void block_cache_forget (BlockCache *self, const PacketFile *file);

typedef struct {
  guint64 asked, hits; // requests, and requests for blocks in memory
  guint64 bytes_read;
} BlockCacheStats;

void block_cache_get_stats (BlockCache *self, BlockCacheStats *stats);

// Returns the number of a block.
guint32 packet_block_number (const PacketBlock *self);

// Gives the bytes of a block (owned by the block). Returns 0; -EAGAIN if they are being read; or
// the negative errno with which that failed. Does not wait.
gint packet_block_get (PacketBlock *self, GBytes **bytes);

// Does so when they have been read.
gint packet_block_wait (PacketBlock *self, GBytes **bytes);

void packet_block_unref (PacketBlock *self); // NULL is fine
