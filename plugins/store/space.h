// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The room on a store's disks.

#include "store/blockstore_private.h"

G_BEGIN_DECLS

// Fills `disks` (of WEIR_STORE_DISKS_MAX) with the store's disks and their room. A disk that is
// missing or being removed is not usable. Returns their number.
guint space_get (WeirBlockStore *store, WeirPlacementDisk *disks);

// Checks that all copies of a title of `bytes` bytes have room. Disks on one device share its room.
gboolean space_check (WeirBlockStore *store, const gchar *name, guint64 bytes, GError **error);

G_END_DECLS
