// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Stores whose titles lie elsewhere, such as on one or two HTTP servers. Each of these is read like
// a disk, with a queue, measured times and second choices (reading.h). Their owner fetches the
// bytes, and may keep blocks in a cache, which is read before the places are asked.

#include "store/blockstore.h"

G_BEGIN_DECLS
#pragma GCC visibility push(default)

#define WEIR_REMOTE_CACHE 0 // the number of the cache among the disks; places count from 1

// How a title is read. `data` belongs to the title.
typedef struct {
  // Reports whether the cache has block `number`. Must not block, nor call into the store.
  gboolean (*is_cached) (gpointer data, guint32 number);
  // Reads a block of `length` bytes at `offset` of the title, from the cache or from a place. Runs
  // in several threads of the store; may block for a bounded time. Returns 0; ESTALE if the title
  // has changed there; ENOENT if it is not there; or another errno that counts as a failure of the
  // place. With an error, `*why` may be set to its reason (transfer full).
  gint (*read) (gpointer data, guint disk, guint32 number, guint64 offset, guint8 *bytes,
      gsize length, gchar **why);
  // May run in any thread, with locks held: must not block, nor call into the store.
  void (*free) (gpointer data);
} WeirRemoteKind;

// Makes a store. `places` are the names of one or two places, for messages; `cache` is that of the
// cache. Blocks are about `slice_ns` long. There are no threads before the first read.
WeirBlockStore *weir_block_store_new_remote (
    const gchar *const *places, const gchar *cache, gint64 slice_ns);
gboolean weir_block_store_is_remote (WeirBlockStore *self);

// Opens a title of a remote store: takes over the contents of `index`, whose blocks lie at places
// 1 and 2 and have no hash, and `data`. Users of a title with the same id and name share one
// object: then `data` is freed. Returns the title (transfer full).
WeirStoredTitle *weir_block_store_open_remote (
    WeirBlockStore *self, WeirIndex *index, const WeirRemoteKind *kind, gpointer data);

#pragma GCC visibility pop
G_END_DECLS
