// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The index at the end of a fragmented MP4 (mfra; ISO/IEC 14496-12, 8.8.9 to 8.8.11): where the
// fragments lie with which a decoder can start.

#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint64_t time; // presentation time of the first frame, in units of the track's timescale
  uint64_t at;   // of the moof in the file
} WeirMp4Entry;

// Writes into `out`, which has `size` bytes; `out` may be NULL if `size` is 0. `track` counts from
// 1. Returns the number of bytes that it takes; if that is more than `size`, `out` is not complete.
size_t weir_mp4_write_index (
    uint8_t *out, size_t size, uint32_t track, const WeirMp4Entry *entries, size_t n);

#define WEIR_MP4_INDEX_END 16 // the last box of an index

// Returns the size of the index from the last WEIR_MP4_INDEX_END bytes of a file; 0 if the file
// does not end with one.
size_t weir_mp4_index_size (const uint8_t end[WEIR_MP4_INDEX_END]);

// Reads an index of weir_mp4_write_index(). Returns the number of entries, of which the first `max`
// are in `entries`, or -EINVAL.
int64_t weir_mp4_read_index (const uint8_t *data, size_t size, WeirMp4Entry *entries, size_t max);
