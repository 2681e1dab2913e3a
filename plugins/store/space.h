// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The room on a store's disks.

#include "store/blockstore_private.h"

G_BEGIN_DECLS

// Fills `disks` (of WEIR_STORE_DISKS_MAX) with the store's disks and their room. A disk that is
// missing, hangs, is being removed, or is avoided by the reader is not usable. Returns their
// number.
guint space_get (WeirBlockStore *store, WeirPlacementDisk *disks);

// Does so, and prepares to place a title on them. Returns FALSE with an error if the policy needs
// more disks than can be used now.
gboolean space_begin (
    WeirBlockStore *store, WeirPlacement *placement, WeirPlacementDisk *disks, GError **error);

// Checks that `n` titles of so many bytes have room together.
gboolean space_check (WeirBlockStore *store, const guint64 *bytes, gsize n, GError **error);

// Reports whether copies on a disk can be written and removed: it is there, answers, and is not
// avoided by the reader.
gboolean space_can_use (WeirBlockStore *store, guint16 number);

G_END_DECLS
