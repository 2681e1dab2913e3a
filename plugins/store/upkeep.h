// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Verifies, repairs, balances and removes titles, and adds and removes disks. The calls block, for
// long; another thread may cancel them by `cancellable` (a GCancellable, or NULL). They are safe to
// end at any moment: an index always names copies that are whole.

#include <gio/gio.h>

#include "store/blockstore.h"

G_BEGIN_DECLS

// Progress: `done` of `total` bytes, and what is being worked on. `problem` is NULL, or says what
// was found wrong and what was done about it.
typedef void (*WeirUpkeepFunc) (
    guint64 done, guint64 total, const gchar *title, const gchar *problem, gpointer data);

typedef struct {
  guint64 titles, blocks, copies; // looked at
  guint64 bad_copies;             // lost or wrong
  guint64 lost_blocks;            // no good copy
  guint64 repaired;               // copies written anew
  guint64 moved;                  // copies moved to another disk
  guint64 leftovers;              // files that no index names; removed by repair
} WeirUpkeepResult;

// Reads every copy of the title `name` (NULL: all titles) and compares its hash.
gboolean weir_block_store_verify (WeirBlockStore *self, const gchar *name, WeirUpkeepFunc progress,
    gpointer data, GCancellable *cancellable, WeirUpkeepResult *result, GError **error);

// Does so, and writes lost and wrong copies anew from the other copy, at most `rate` bytes a second
// (0: no limit).
gboolean weir_block_store_repair (WeirBlockStore *self, const gchar *name, guint64 rate,
    WeirUpkeepFunc progress, gpointer data, GCancellable *cancellable, WeirUpkeepResult *result,
    GError **error);

// Repairs one block in the background: used by the reader when it finds a bad copy.
gboolean weir_block_store_repair_block (
    WeirStoredTitle *title, guint32 number, guint16 bad_disk, GError **error);

// Moves copies from fuller to emptier disks until all are used alike, as after a disk was added.
// Copies on disks that are being removed are moved away.
gboolean weir_block_store_balance (WeirBlockStore *self, guint64 rate, WeirUpkeepFunc progress,
    gpointer data, GCancellable *cancellable, WeirUpkeepResult *result, GError **error);

gboolean weir_block_store_remove_title (WeirBlockStore *self, const gchar *name, GError **error);

// Adds the folder `path` as a disk, or takes a disk out of use: its copies are moved by the next
// balance.
gboolean weir_block_store_add_disk (
    WeirBlockStore *self, const gchar *path, gchar **warning, GError **error);
gboolean weir_block_store_remove_disk (WeirBlockStore *self, const gchar *path, GError **error);

G_END_DECLS
