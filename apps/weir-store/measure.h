// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Measures the disks of a store by reads of its blocks.

#include "store/blockstore.h"

typedef struct {
  gdouble access_s; // t_a: the time of a small read
  gdouble rate;     // r_d: bits a second, of whole blocks less t_a
} Measure;

// Reads up to 24 copies of each disk, in part and then whole. Stores the values of all disks
// together. Returns FALSE with an error if the store has no blocks large enough.
gboolean measure_store (Measure *self, WeirBlockStore *store, GError **error);
