// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What verify, repair and balance share.

#include "store/blockstore_private.h"
#include "store/upkeep.h"

G_BEGIN_DECLS

typedef struct {
  WeirBlockStore *store;
  WeirUpkeepFunc progress; // may be NULL
  gpointer data;
  GCancellable *cancellable; // may be NULL
  WeirUpkeepResult result;
  guint64 done, total;
  guint64 rate;        // bytes a second, 0: no limit
  gint64 due_us;       // of the bytes that were written
  gboolean background; // gives way to readers, and to who wants its turn
  int turn;            // of a balance in the background (balancing.h)
} Upkeep;

// A copy of a block that has been written on the disk `to` in place of that on the disk `from`.
typedef struct {
  guint32 number;
  guint16 from, to;
} UpkeepMove;

// Returns the titles' names in order (transfer full): `name`, or all if it is NULL. Indexes that
// cannot be read are reported and counted, and their titles left out.
GPtrArray *upkeep_list (Upkeep *self, const gchar *name, GError **error);

void upkeep_report (Upkeep *self, const gchar *title, const gchar *problem);

// Counts written bytes, and waits until as many are due. What was not used of the rate is lost.
// Returns FALSE with an error if the work is to end.
gboolean upkeep_pace (Upkeep *self, guint64 bytes, GError **error);

// In the background, waits until no reader needs one of two disks. Returns FALSE with an error if
// the work is to end.
gboolean upkeep_give_way (Upkeep *self, guint16 from, guint16 to, GError **error);

// Returns the bytes of a block from the first good copy, other than that on disk `but` (transfer
// full), or NULL.
guint8 *upkeep_read (WeirStoredTitle *title, guint32 number, gint32 but, GError **error);

// Makes the index name the copies that were written, and removes those in whose place they are. A
// move that no longer fits, because the title or the block has changed meanwhile, is undone.
// Returns the number of moves done.
guint upkeep_commit (
    WeirStoredTitle *title, const UpkeepMove *moves, guint n_moves, GError **error);

// Writes the copy of a block on disk `bad` anew, or on another disk if that fails.
gboolean upkeep_rewrite (
    WeirStoredTitle *title, guint32 number, guint16 bad, const guint8 *bytes, GError **error);

// Reports whether the index names a copy on the disk.
gboolean upkeep_uses_disk (const WeirIndex *index, guint16 disk);

// Looks at the copies of a title's index on the disks that are there, and writes those anew that
// are not good if `repair`. Returns how many are not good.
guint upkeep_check_indexes (
    WeirBlockStore *store, const gchar *name, const WeirStoreDisk *disks, guint n, gboolean repair);

// Finds the id of the title `name` in copies of indexes.
gboolean upkeep_find_id (WeirBlockStore *store, const gchar *name, gchar id[33]);

// Makes indexes anew that are lost or not valid, from copies on the disks.
gboolean upkeep_restore (Upkeep *self, GError **error);

// Looks for files that no index names, and removes them if `remove`: those of titles without an
// index only if `forget`, as that may be lost. Reports these.
gboolean upkeep_leftovers (Upkeep *self, gboolean remove, gboolean forget, GError **error);

G_END_DECLS
