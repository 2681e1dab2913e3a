// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A file that takes buffers for which memory is too small. It is mapped in pieces, each of which is
// used again when nobody has any of its bytes any more: a ring, as the oldest go first, and one
// that never writes over what a reader still has. The file has no name: it goes with the last
// piece, and nobody can remove or cut it meanwhile.

#include <gst/gst.h>

G_BEGIN_DECLS

typedef struct _CacheSpill CacheSpill;

// NULL, and errno, if there can't be such a file.
CacheSpill *cache_spill_new (const gchar *dir, guint64 max_bytes);
void cache_spill_unref (CacheSpill *spill);

// A copy of the buffer or list with its bytes in the file, or NULL if there is no room.
GstMiniObject *cache_spill_take (CacheSpill *spill, GstMiniObject *object);

// The bytes that the file may have. Less than it was made for, if the disk has turned out to be
// full.
guint64 cache_spill_capacity (CacheSpill *spill);

G_END_DECLS
