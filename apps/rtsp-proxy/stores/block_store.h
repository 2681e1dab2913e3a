// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A store whose titles are in a block store (plugins/store), in blocks on several disks.

#include "store/blockstore.h"
#include "stores/store.h"

// Makes a store (transfer full) for the block store in the folder `path`, which is opened with the
// first title. Up to `memory` bytes of blocks stay in memory. All stores for one folder share them;
// the bound is that of the store which was opened last.
// `is_limited`: an API client has named the folder (base/file_roots.h).
Store *block_store_new (const gchar *path, gboolean is_limited, guint64 memory);

// Fills in up to `n_max` disks that have been read, and returns their number.
guint block_store_fill_disks (WeirBlockStore *store, StoreDisk *disks, guint n_max);
