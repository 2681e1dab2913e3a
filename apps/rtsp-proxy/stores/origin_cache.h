// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A folder with blocks that were fetched from elsewhere, the most frequently requested ones first,
// within a bound in bytes. Blocks outlive the program; each has its name and its hash (XXH3) in its
// file, so a damaged file is fetched again. One object, of one process, uses a folder. Call from
// any thread.

#include <glib.h>

typedef struct _OriginCache OriginCache;

// A block is known by the id of its title and its number.
#define ORIGIN_ID_BYTES 16

// Makes a cache of `bytes` bytes in `folder`, which is made if its parent exists.
OriginCache *origin_cache_new (const gchar *folder, guint64 bytes);
OriginCache *origin_cache_ref (OriginCache *self);
void origin_cache_unref (OriginCache *self);

// Locks the folder and lists its blocks, unless that is done. Before, and as long as another object
// has the folder, the cache is empty and keeps nothing. May block on a disk.
void origin_cache_open (OriginCache *self);

// Counts a request for a block and reports whether it is in the folder. Does not block.
gboolean origin_cache_ask (OriginCache *self, const guint8 *id, guint32 number);

// Reads a block of `length` bytes. Returns FALSE if it is not there or damaged; then it is
// forgotten. May block on a disk.
gboolean origin_cache_read (
    OriginCache *self, const guint8 *id, guint32 number, guint8 *bytes, gsize length);

// Keeps a block if it is requested more often than others. May block on a disk.
void origin_cache_write (
    OriginCache *self, const guint8 *id, guint32 number, const guint8 *bytes, gsize length);
