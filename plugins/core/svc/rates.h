// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The bitrate and frame rate of each layer, as moving averages, and the highest set of layers that
// fits into a bitrate.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svc/frame.h"
#include "svc/layerset.h"

#define WEIR_RATES_LAYERS 64
#define WEIR_RATES_PERIOD_NS 200000000 // what is averaged
#define WEIR_RATES_WEIGHT 16           // a new period counts for 1/16; the first ones count alike

typedef struct {
  uint8_t spatial, quality, temporal;
  uint64_t bytes, frames;     // of the period that runs
  double bitrate, frame_rate; // bits and frames per second, of this layer without those below
  uint64_t total_bytes;
} WeirLayerRate;

typedef struct {
  WeirLayerRate layers[WEIR_RATES_LAYERS]; // in order: spatial, temporal, quality
  size_t n;
  int64_t period_start; // ns
  bool started;
  unsigned periods;
} WeirRates;

// Counts a frame that was read, in all its layers. `now` in ns, on any clock that goes forward (by
// and large: pictures may be shown in another order). Returns true where a period ended, so that
// the averages are new.
bool weir_rates_add (WeirRates *self, const WeirFrame *frame, int64_t now);

// The same for a packet of one layer.
bool weir_rates_add_packet (
    WeirRates *self, const WeirLayer *layer, size_t bytes, bool starts_frame, int64_t now);

// Bits per second of a set; of its highest spatial layer alone where `alone` is set.
double weir_rates_of (const WeirRates *self, WeirLayerSet set, bool alone);

// The set of the highest bitrate that is within `limit` and takes at most `bitrate` bits per
// second. Where none does: the base, and `*fits` is false.
WeirLayerSet weir_rates_choose (
    const WeirRates *self, WeirLayerSet limit, uint64_t bitrate, bool alone, bool *fits);
