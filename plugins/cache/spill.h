// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A memory-mapped file that stores buffers which do not fit into memory. The file is mapped in
// pieces of 1 MiB. A piece is reused when the last reference to its bytes is dropped, so data that
// a reader still uses is never overwritten. The file has no name: it is freed with the last piece,
// and no other process can remove or truncate it.
//
// Storing waits for the disk if the system is behind with writing.
//
// A policy can decide, from the pieces that readers request, which pieces also stay in memory.
// Without a policy the system decides.

#include <gst/gst.h>

#include "core/window/policy.h"

G_BEGIN_DECLS

typedef struct _CacheSpill CacheSpill;

// Creates a file in the folder `dir`, of at most `max_bytes`. Returns NULL and sets errno on
// failure. The caller is the only writer and closes the file.
CacheSpill *cache_spill_new (const gchar *dir, guint64 max_bytes);
void cache_spill_close (CacheSpill *spill);
CacheSpill *cache_spill_ref (CacheSpill *spill);
void cache_spill_unref (CacheSpill *spill);

// Sets the policy for pieces in memory. Call before the first write.
void cache_spill_set_rule (CacheSpill *spill, WeirPolicyRule rule, guint64 bytes_in_memory);

// The stored form of a buffer or buffer list. Without metas, only piece and offset are kept, and
// cache_spill_load() creates a new object. With metas, `copy` stays in memory and its data is in
// the file.
typedef struct _CachePiece CachePiece;
typedef struct {
  CachePiece *piece;   // a reference, or NULL
  guint32 offset;      // in the piece, bytes
  GstMiniObject *copy; // set if `piece` is NULL
  guint64 number;      // number of the piece where the data begins, from 1
} CacheStored;

// Stores a buffer or buffer list. Returns FALSE if the file has no room.
gboolean cache_spill_store (CacheSpill *spill, GstMiniObject *object, CacheStored *stored);

// Creates the object stored at `offset`. Takes over the reference to `piece`. (transfer full)
GstMiniObject *cache_spill_load (CachePiece *piece, guint32 offset);
CachePiece *cache_piece_ref (CachePiece *piece);
void cache_piece_unref (CachePiece *piece);

// Tells the policy that a reader requests a piece. Returns TRUE if the piece is in memory.
// Otherwise the policy adds it, and `*evicted` lists the pieces to evict: pass it to
// cache_spill_page_out(), which may take a while and accepts NULL.
typedef struct _CacheSpillEvicted CacheSpillEvicted;
gboolean cache_spill_ask (CacheSpill *spill, guint64 piece, CacheSpillEvicted **evicted);
void cache_spill_page_out (CacheSpillEvicted *evicted);

// Returns the maximum size of the file in bytes. It shrinks when the disk is full.
guint64 cache_spill_capacity (CacheSpill *spill);

G_END_DECLS
