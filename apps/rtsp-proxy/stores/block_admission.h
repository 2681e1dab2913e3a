// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Admits as many streams of a block store as its disks can give: by the model of disks/model.h,
// with what the disks do as it is measured now, less a margin.
//
// A stream counts if disks are read for it. One that begins at most two blocks behind the newest
// one that another stream of its title has asked for gets blocks which that one has read, so it is
// admitted and does not count. Whether a
// stream counts later on follows from what it asks for: it begins to count with the first block
// that a disk must read for it, and ends to do so after four blocks in a row that were in memory or
// read for another stream. When a stream that counts leaves, one of its title takes its place.
//
// So the number of counted streams grows beyond the bound only by readers who seek away from those
// with whom they share blocks. The margin is for them.
//
// The rates of all streams, counted or not, may not exceed the rate of the line.
//
// Call from any thread.

#include <gio/gio.h>

#include "store/blockstore.h"

typedef struct _BlockStream BlockStream;

// Admits a stream of the title with this id that has `rate` bits a second, in blocks of
// `block_bytes` on average, and begins with block `first`. So it needs a read each 8 block_bytes /
// rate seconds, or each slice if one of them is 0. Returns NULL and sets G_IO_ERROR_NO_SPACE if it
// is one too many. The store must outlive the stream.
BlockStream *block_admission_enter (WeirBlockStore *store, const guint8 id[16], guint64 rate,
    guint64 block_bytes, guint32 first, gint64 now_ns, GError **error);

// Notes that the stream has asked for a block. `read`: a disk is read because of that.
void block_admission_note (BlockStream *self, guint32 block, gboolean read, gint64 now_ns);

// Frees the stream.
void block_admission_leave (BlockStream *self);

// Sets the rate of the line in bits a second for further streams of all stores; 0: no limit.
void block_admission_set_line (guint64 rate);

// Returns the rates of all streams together, in bits a second.
guint64 block_admission_get_line (void);
