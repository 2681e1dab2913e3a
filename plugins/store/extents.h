// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The memory of blocks: extents of one anonymous file, each mapped. An extent that is no longer
// used is kept for the next block of about its size, because a fresh one costs a page fault for
// each 4 KiB: about 0.2 s of processor time a gigabyte, where O_DIRECT itself takes 0.04 s.
//
// Offsets in the file are not used twice: the file has holes, and 2^63 bytes last for 58 years at
// 5 GB/s. So there is nothing to defragment.

#include <glib.h>
#include <sys/types.h>

G_BEGIN_DECLS

#define WEIR_EXTENT_ALIGN 4096 // of addresses, offsets and sizes, for O_DIRECT
#define WEIR_EXTENT_CLASSES 160

typedef struct _WeirExtent WeirExtent;
struct _WeirExtent {
  guint8 *bytes;
  gsize size;
  off_t offset; // in the file
  WeirExtent *next;
};

// The owner's lock guards all fields but `fd`.
typedef struct {
  int fd;
  off_t end;
  guint64 used_bytes, free_bytes; // of extents in use; of those kept
  WeirExtent *free[WEIR_EXTENT_CLASSES];
} WeirExtents;

// Makes the file. Returns FALSE with errno set if the system refuses.
gboolean weir_extents_init (WeirExtents *self);

// Unmaps kept extents and closes the file. All extents must have been put back.
void weir_extents_clear (WeirExtents *self);

// Returns a kept extent for `bytes` bytes, or NULL; then the caller calls weir_extents_add()
// without its lock. Lock held.
WeirExtent *weir_extents_take (WeirExtents *self, gsize bytes);

// Maps a new extent. Takes `lock` for a moment. For one thread. Returns NULL if there is no memory.
WeirExtent *weir_extents_add (WeirExtents *self, gsize bytes, GMutex *lock);

// Puts an extent back, and keeps it if no more than `keep_bytes` are kept then. Else it is
// returned, and the caller drops it without its lock. Lock held.
WeirExtent *weir_extents_put (WeirExtents *self, WeirExtent *extent, guint64 keep_bytes);

// Takes kept extents out until no more than `keep_bytes` are kept. Returns them as a list, to be
// dropped. Lock held.
WeirExtent *weir_extents_trim (WeirExtents *self, guint64 keep_bytes);

// Gives the memory of a list of extents back to the system. NULL is allowed.
void weir_extents_drop (WeirExtents *self, WeirExtent *list);

G_END_DECLS
