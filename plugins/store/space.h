// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The room on a store's disks. weir_title_writer_check_space() is here, too.

#include "store/blockstore_private.h"

G_BEGIN_DECLS

// Fills `disks` (of WEIR_STORE_DISKS_MAX) with the store's disks and their room. A disk that is
// missing or being removed is not usable. Returns their number.
guint space_get (WeirBlockStore *store, WeirPlacementDisk *disks);

G_END_DECLS
