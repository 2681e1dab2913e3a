// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The folder of a disk. Its file weir-disk names the store and the disk's number, so that a folder
// is not used for another disk, such as an empty mount point whose disk is missing.

#include "store/blockstore.h"

G_BEGIN_DECLS

typedef struct {
  guint64 device; // st_dev
  guint64 bytes, free_bytes;
} WeirDiskSpace;

// Marks a folder as disk `number` of the store, durably.
gboolean weir_disk_mark (const gchar *path, const gchar *store, guint16 number, GError **error);

// Removes the mark, and the folder of blocks if it is empty.
void weir_disk_unmark (const gchar *path);

// Says whether the folder is disk `number` of the store. May block.
WeirDiskState weir_disk_check (const gchar *path, const gchar *store, guint16 number);

// Returns the real path of a folder that can become a disk: it exists, is not a disk of any store,
// and has no blocks.
gchar *weir_disk_resolve (const gchar *path, GError **error);

// Does so, but the folder may be disk `number` of this store.
gchar *weir_disk_resolve_for (
    const gchar *path, const gchar *store, guint16 number, GError **error);

// Returns a warning that the last of `n` disks is on one device with others, all of which it names;
// or NULL. Disks whose device (st_dev) is 0 are left out. (transfer full)
gchar *weir_disk_dup_warning (const gchar *const *paths, const guint64 *devices, guint n);

// Returns FALSE if the disk does not answer such questions. Does not wake a disk that is asleep.
gboolean weir_disk_get_space (const gchar *path, WeirDiskSpace *space);

G_END_DECLS
