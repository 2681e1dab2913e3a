// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Verifies, repairs, balances and removes titles, and adds and removes disks. The calls block, for
// long; another thread may cancel them by `cancellable`. They are safe to end at any moment: an
// index always names copies that are whole. `progress`, `cancellable` and `result` may be NULL.

#include <gio/gio.h>

#include "store/blockstore.h"

G_BEGIN_DECLS
#pragma GCC visibility push(default)

// Progress: `done` of `total` bytes, and what is being worked on. `problem` is NULL, or says what
// was found wrong and what was done about it.
typedef void (*WeirUpkeepFunc) (
    guint64 done, guint64 total, const gchar *title, const gchar *problem, gpointer data);

typedef struct {
  guint64 titles, blocks, copies; // looked at
  guint64 missing_disks;          // not there, or not to be read
  guint64 bad_indexes;            // titles whose index is not valid
  guint64 restored;               // indexes made anew from copies on the disks, by repair
  guint64 bad_index_copies;       // lost or wrong, on the disks; by repair: that stay so
  guint64 unknown;                // files of titles without an index, which stay
  guint64 bad_copies;             // lost or wrong
  guint64 lost_blocks;            // no good copy
  guint64 repaired;               // copies written anew
  guint64 moved;                  // copies moved to another disk
  guint64 no_room;                // copies that are to be moved, and for which no disk has room
  guint64 staying_disks;          // that are being removed and could not leave the store
  guint64 leftovers;              // files that their index does not name; removed by repair
} WeirUpkeepResult;

// Reads every copy of the title `name` (NULL: all titles) and compares its hash. Returns TRUE if
// that could be done, whatever was found.
gboolean weir_block_store_verify (WeirBlockStore *self, const gchar *name, WeirUpkeepFunc progress,
    gpointer data, GCancellable *cancellable, WeirUpkeepResult *result, GError **error);

// Does so, and writes lost and wrong copies anew from the other copy, at most `rate` bytes a second
// (0: no limit). If the disk of such a copy is missing or fails, another disk gets it, unless the
// policy is RAID1. If `name` is NULL, it first makes indexes anew that are lost or not valid, from
// their copies on the disks, and at last removes leftovers if all indexes can be read; files of
// titles without an index only if `forget`.
gboolean weir_block_store_repair (WeirBlockStore *self, const gchar *name, guint64 rate,
    gboolean forget, WeirUpkeepFunc progress, gpointer data, GCancellable *cancellable,
    WeirUpkeepResult *result, GError **error);

// Writes the copy of one block on the disk `bad_disk` anew, as the reader does in the background
// when it finds a bad copy. Blocks. Returns TRUE if the block has no copy on that disk any more.
gboolean weir_block_store_repair_block (
    WeirStoredTitle *title, guint32 number, guint16 bad_disk, GError **error);

// Moves copies, at most `rate` bytes a second (0: no limit), until all disks are used alike, as
// after a disk was added: NAIVE and RAID1 titles as a whole, RAID0 blocks to their disks in turn,
// others from fuller to emptier disks. Copies on disks that are being removed are moved away, or
// written anew from the other copy; a disk without copies leaves the store. One in the background
// gives way; G_IO_ERROR_BUSY: another call balances the store already.
gboolean weir_block_store_balance (WeirBlockStore *self, guint64 rate, WeirUpkeepFunc progress,
    gpointer data, GCancellable *cancellable, WeirUpkeepResult *result, GError **error);

// Removes a title, or an index that is not valid; the blocks of the latter only if a disk has a
// copy of that index. Readers of the title get no further blocks.
gboolean weir_block_store_remove_title (WeirBlockStore *self, const gchar *name, GError **error);

// Adds the folder `path` as a disk. `*warning` as for weir_block_store_init().
gboolean weir_block_store_add_disk (
    WeirBlockStore *self, const gchar *path, gchar **warning, GError **error);

// Takes the disk `path` out of use: it gets no more blocks, and the next balance moves its blocks.
gboolean weir_block_store_remove_disk (WeirBlockStore *self, const gchar *path, GError **error);

// Puts the folder `path` in the place of the disk `old`, whose number and copies it gets: they are
// read from the old disk, or from the other copies if that is gone. `path` may be that of the dead
// disk, where an empty one was mounted. If the old disk is there, it is used until all copies are
// on the new one, and its files stay on it. A call that was ended or killed is gone on with by the
// same call. `rate`, `warning` and the others as above; `result` counts copies written as `moved`,
// and blocks without a good copy as `lost_blocks`.
gboolean weir_block_store_replace_disk (WeirBlockStore *self, const gchar *old, const gchar *path,
    guint64 rate, WeirUpkeepFunc progress, gpointer data, GCancellable *cancellable,
    WeirUpkeepResult *result, gchar **warning, GError **error);

// Balances the store in the background, at most `rate` bytes a second, from now until it is freed,
// each time that a disk was added or is to be removed. It waits while readers of this process need
// its disks. It says by g_message() when it begins to move copies and when it has ended. Free stops
// it at once; what it has begun is gone on with the next time.
typedef struct _WeirStoreBalancer WeirStoreBalancer;
WeirStoreBalancer *weir_store_balancer_new (WeirBlockStore *store, guint64 rate);
void weir_store_balancer_free (WeirStoreBalancer *self);

#pragma GCC visibility pop
G_END_DECLS
