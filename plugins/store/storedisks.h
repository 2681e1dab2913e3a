// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The disks of store.yaml.

#include "store/upkeep_private.h"

G_BEGIN_DECLS

// Checks that the folder `path` can be a disk of the store in `dir`: it lies neither in the store
// nor in another disk, and no other disk lies in it. Both paths are real ones.
gboolean storedisks_check_place (
    const WeirStoreFile *file, const gchar *dir, const gchar *path, GError **error);

// Locks the store and reads store.yaml. Returns a descriptor for storedisks_end(), or -1.
int storedisks_begin (WeirBlockStore *store, WeirStoreFile **file, GError **error);

// Writes store.yaml if `write`, frees the file and unlocks. Returns whether it was written.
gboolean storedisks_end (
    WeirBlockStore *store, WeirStoreFile *file, int lock, gboolean write, GError **error);

// Finds the disk that a path leads to, or NULL.
WeirStoreFileDisk *storedisks_find (WeirStoreFile *file, const gchar *path);

// Returns a warning if the new disk is on one device with disks of the store other than disk `but`,
// or NULL. (transfer full)
gchar *storedisks_dup_warning (WeirBlockStore *store, const gchar *path, guint32 but);

// Ends a balance: removes disks from store.yaml that are being removed and that no index names.
// Reports those that stay, with the reason. If none does, and `balanced` is the stamp of
// store.yaml, no balance is due any more; it may be NULL.
gboolean storedisks_drop (Upkeep *up, const gint64 balanced[3], GError **error);

G_END_DECLS
