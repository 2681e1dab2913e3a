// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A title that is being added or removed has a file in the store's folder adding/, named by its id.
// It is locked as long as its maker lives, and is made durable before anything else of the title.
// If it is there and not locked, what its maker has left is removed.

#include "store/blockstore_private.h"

G_BEGIN_DECLS

// Begins to add or remove the title with this id. The store is locked. Returns a descriptor for
// leftovers_end(), or -1.
int leftovers_begin (WeirBlockStore *store, const gchar *id, const gchar *name, GError **error);

// Ends so, once the blocks of the title are either named by an index or removed.
void leftovers_end (WeirBlockStore *store, const gchar *id, int fd);

// Removes the title's folders of blocks from all disks. Returns FALSE if a disk is missing or a
// file could not be removed.
gboolean leftovers_remove_blocks (WeirBlockStore *store, const gchar *id, guint64 *n_removed);

// Reports whether a title with this id is being added or removed.
gboolean leftovers_is_busy (WeirBlockStore *store, const gchar *id);

// Reports whether a title with this id is being added or removed, or was when its maker was killed.
gboolean leftovers_is_noted (WeirBlockStore *store, const gchar *id);

// Reports whether any title is being added or removed.
gboolean leftovers_any_busy (WeirBlockStore *store);

// Removes what killed writers have left. The store is locked. Returns the number of files.
guint64 leftovers_clean (WeirBlockStore *store);

G_END_DECLS
