// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The disks of store.yaml.

#include "store/upkeep_private.h"

G_BEGIN_DECLS

// Checks that the folder `path` can be a new disk of the store in `dir`: it lies neither in the
// store nor in a disk, and no disk lies in it. Both paths are real ones.
gboolean storedisks_check_place (
    const WeirStoreFile *file, const gchar *dir, const gchar *path, GError **error);

// Ends a balance: removes disks from store.yaml that are being removed and that no index names.
// Reports those that stay, with the reason. If none does, and `balanced` is the stamp of
// store.yaml, no balance is due any more; it may be NULL.
gboolean storedisks_drop (Upkeep *up, const gint64 balanced[3], GError **error);

G_END_DECLS
