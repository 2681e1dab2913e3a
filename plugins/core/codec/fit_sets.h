// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The H.264 parameter sets of a stream, each with its newest content.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_FIT_SETS 16
#define WEIR_FIT_SET_BYTES 256

typedef struct {
  uint8_t type; // of the unit
  uint8_t id, sps;
  bool due; // receivers do not have this content
  uint16_t len;
  uint8_t data[WEIR_FIT_SET_BYTES];
} WeirFitSet;

typedef struct {
  WeirFitSet all[WEIR_FIT_SETS]; // every SPS, then every PPS
  size_t n;
} WeirFitSets;

// Notes an SPS or PPS. A new SPS ends each PPS that refers to its id. Returns false, and notes
// nothing, if it is invalid, longer than WEIR_FIT_SET_BYTES, or one too many.
bool weir_fit_sets_note (WeirFitSets *self, const uint8_t *nal, size_t len);
