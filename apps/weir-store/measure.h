// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Measures the disks of a store by reads of its blocks.

#include "store/blockstore.h"

typedef struct {
  gdouble access_s; // t_a: a small read at random
  gdouble rate;     // r_d: bits a second of the rest of a block
} Measure;

// Reads up to 24 copies of each disk, and stores the mean over all disks. Returns FALSE with an
// error if the store has no blocks large enough.
gboolean measure_store (Measure *self, WeirBlockStore *store, GError **error);
