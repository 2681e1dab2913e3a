// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Measures the bitrate and frame rate of each layer as moving averages, and finds the highest layer
// set that fits into a bitrate.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svc/frame.h"
#include "svc/layerset.h"

#define WEIR_RATES_LAYERS 64
#define WEIR_RATES_PERIOD_NS 200000000 // length of one measurement
#define WEIR_RATES_WEIGHT 16 // weight of a new period is 1/16; the first 16 periods weigh the same
#define WEIR_RATES_KEY_WEIGHT 64 // the same, for keyframes, which come seldom

typedef struct {
  uint8_t spatial, quality, temporal;
  uint64_t bytes, frames;     // of the current period
  double bitrate, frame_rate; // bits and frames per second, without the layers below
  uint64_t total_bytes;
} WeirLayerRate;

typedef struct {
  WeirLayerRate layers[WEIR_RATES_LAYERS]; // sorted by spatial, temporal, quality
  size_t n;
  int64_t period_start; // ns
  bool started;
  unsigned periods;
  // Of the lowest layer's packets: those of keyframes, and those that other frames need.
  uint64_t key_bytes, reference_bytes; // of the current period
  double key_bitrate, reference_bitrate;
  int64_t key_ns; // when the last keyframe came; 0: none yet
} WeirRates;

// Counts all layers of a frame that was read. `now` is in ns, on any clock; it may step back for
// pictures that are presented out of order. Returns true if a period ended, so that the
// averages are new.
bool weir_rates_add (WeirRates *self, const WeirFrame *frame, int64_t now);

// Counts a packet of `bytes` bytes of one layer. `starts_frame` also counts a frame.
bool weir_rates_add_packet (
    WeirRates *self, const WeirLayer *layer, size_t bytes, bool starts_frame, int64_t now);

// Counts a packet of `bytes` bytes of the lowest layer that came at `now`, beside one of the
// functions above, which end the periods.
static inline void
weir_rates_add_lowest (WeirRates *self, size_t bytes, bool key, bool discardable, int64_t now)
{
  self->key_ns = key ? now : self->key_ns;
  self->key_bytes += key ? bytes : 0;
  self->reference_bytes += discardable ? 0 : bytes;
}

// Returns the bit rate of a set in bits per second; with `alone`, of its highest spatial layer
// only.
double weir_rates_of (const WeirRates *self, WeirLayerSet set, bool alone);

// Returns the set with the highest bit rate within `limit` that takes at most `bitrate` bits per
// second. If none fits, returns the base layer and sets `*fits` to false.
WeirLayerSet weir_rates_choose (
    const WeirRates *self, WeirLayerSet limit, uint64_t bitrate, bool alone, bool *fits);
