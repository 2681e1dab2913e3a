// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Writes the head of a fragment (ISO/IEC 14496-12, 8.8): styp if it begins a segment, a moof with
// one traf for each track that has samples, and the head of the mdat. The caller writes the data of
// the samples behind it, track by track in order.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint32_t size;     // bytes
  uint32_t duration; // in units of the track's timescale
  int32_t offset;    // composition time minus decode time, in the same units; may be negative
  bool key;          // a decoder can start here
} WeirMp4Sample;

typedef struct {
  uint64_t start; // decode time of the first sample, in units of the track's timescale
  const WeirMp4Sample *samples;
  size_t n_samples; // 0: the fragment has nothing of the track
} WeirMp4Run;

// Writes into `out`, which has `size` bytes; `out` may be NULL if `size` is 0. `runs[i]` is of
// track `i` of weir_mp4_write_init(). `sequence` counts the fragments from 1. Returns the number of
// bytes that it takes; if that is more than `size`, `out` is not complete. All data must be less
// than 4 GiB.
size_t weir_mp4_write_fragment (uint8_t *out, size_t size, uint32_t sequence, bool begins_segment,
    const WeirMp4Run *runs, size_t n_runs);
