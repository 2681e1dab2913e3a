// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The bytes of a title in a block store (plugins/store). A region is a block.

#include "store/blockstore.h"
#include "stores/bytes.h"

// Takes ownership of a reference to the title.
StoreBytes *block_bytes_new (WeirStoredTitle *title);
