// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Admits as many streams of a block store as its disks can give: by the model of disks/model.h,
// with what the disks do as it is measured now, less a margin. A stream counts as if nobody shared
// its blocks. Call from any thread.

#include <gio/gio.h>

#include "store/blockstore.h"

// Counts a stream of `rate` bits a second. Returns FALSE and sets G_IO_ERROR_NO_SPACE if it is one
// too many.
gboolean block_admission_enter (WeirBlockStore *store, guint64 rate, GError **error);
void block_admission_leave (WeirBlockStore *store, guint64 rate);
