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

// Looks for files that no index names, and removes them if `remove`.
gboolean upkeep_leftovers (Upkeep *self, gboolean remove, GError **error);

G_END_DECLS
