// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads blocks. Each disk has a queue, earliest deadline first. Several requests for one block
// share one read. Blocks that were read stay in memory, the most frequently requested ones first,
// within the store's memory bound. A copy that is lost or wrong, or a disk that does not answer in
// time, is made up for by the other copy.
//
// Blocks lie in one anonymous file (memfd_create()), so their bytes can be sent with sendfile() and
// shared with other processes.

#include <sys/types.h>

#include "store/blockstore.h"

G_BEGIN_DECLS
#pragma GCC visibility push(default)

typedef struct _WeirBlock WeirBlock;
typedef struct _WeirBlockRequest WeirBlockRequest;

// Gets a block (transfer full) or an error. Runs in a thread of the store, or in the caller's
// thread, before weir_block_request() returns, if the block is in memory. Must not block.
typedef void (*WeirBlockFunc) (WeirBlock *block, const GError *error, gpointer data);

// Asks for block `number` of the title, which is needed at `deadline_ns` of CLOCK_MONOTONIC.
// Returns the request, which the caller must free. The request keeps the title alive.
WeirBlockRequest *weir_block_request (
    WeirStoredTitle *title, guint32 number, gint64 deadline_ns, WeirBlockFunc done, gpointer data);

// Reports whether a disk is read because of this request: its block was neither in memory nor being
// read for another one.
gboolean weir_block_request_began (const WeirBlockRequest *self);

// Frees a request. After it has returned, `done` neither runs nor will run, so it must not be
// called from `done`.
void weir_block_request_free (WeirBlockRequest *self);

// Reads a block and waits for it. `cancellable` is a GCancellable or NULL. Returns NULL with an
// error, or with G_IO_ERROR_CANCELLED.
WeirBlock *weir_block_read (WeirStoredTitle *title, guint32 number, gint64 deadline_ns,
    gpointer cancellable, GError **error);

WeirBlock *weir_block_ref (WeirBlock *self);
void weir_block_unref (WeirBlock *self);

// The block's bytes of the title, and the table of its buffers (core/disks/table.h). `length` may
// be NULL.
const guint8 *weir_block_get_bytes (WeirBlock *self, gsize *length);
const guint8 *weir_block_get_table (WeirBlock *self, gsize *length);

// The anonymous file that holds the block, and the offset of the block's first byte in it. The
// bytes may be sent with sendfile(): they do not change after the block is freed.
int weir_block_get_fd (WeirBlock *self, off_t *offset);

// Sets the bound of the memory for blocks in bytes; default 256 MiB. Blocks in use are kept beyond
// it.
void weir_block_store_set_memory (WeirBlockStore *self, guint64 bytes);

// What a disk does, for metrics and for admission.
typedef struct {
  guint16 number;
  guint queue;           // reads that wait, here or here and at another disk, or are in progress
  guint64 reads, errors; // since the store was opened
  guint64 bytes;
  guint64 second_choices;         // reads that went to the copy that is not the first in the index
  guint64 moved_here, moved_away; // copies, by a balance in the background
  gint64 service_ns;              // moving average of the time of a read at the disk; 0: none yet
  guint64 read_bytes;             // moving average of the bytes of a read
  gint64 access_ns;               // t_a, measured, if `rate` is not 0
  guint64 rate;     // r_d, measured, bits a second; 0: reads of one size do not tell it
  gboolean failing; // avoided: errors, or it does not answer
} WeirDiskStats;

// Stores what the disks do that were read, at most `n_max`, and returns their number.
guint weir_block_store_get_stats (WeirBlockStore *self, WeirDiskStats *stats, guint n_max);

// Returns the time in ns that the disk needs for a read of `bytes`, by t_a and r_d if these are
// known. Else it is known for reads of about `read_bytes`: a smaller one is taken to need as long,
// and a larger one longer in proportion, so the time is not less than the real one. Returns 0 if
// the disk was not read yet.
gint64 weir_disk_stats_get_time (const WeirDiskStats *stats, guint64 bytes);

typedef struct {
  guint64 asked, hits, shared; // requests; answered from memory; that joined a read in progress
  guint64 bytes;               // in memory
  guint64 late;                // answered after their deadline
  guint64 repaired, lost;      // blocks
} WeirReadStats;

void weir_block_store_get_read_stats (WeirBlockStore *self, WeirReadStats *stats);

#pragma GCC visibility pop
G_END_DECLS
