// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Writes a live Matroska (RFC 9559) of H.264, H.265 and AAC: a head, and each frame in a cluster of
// its own, so that it can be read as soon as it is written. The segment has no known end.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mp4/track.h"

// Writes the beginning. `out` has `size` bytes, and may be NULL if that is 0. Track `i` gets the
// number i + 1. Of a track, `width` and `height` are not used, and its codec must be one of the
// three. Returns the number of bytes that it takes; if that is more than `size`, `out` is not
// complete.
size_t weir_matroska_write_head (
    uint8_t *out, size_t size, const WeirMp4Track *tracks, size_t n_tracks);

#define WEIR_MATROSKA_FRAME_HEAD 33 // bytes

// Writes what stands before the `len` bytes of a frame (less than 2^48), which has the presentation
// time `time_us`. `track` is its index, less than 126. Returns WEIR_MATROSKA_FRAME_HEAD.
size_t weir_matroska_write_frame_head (
    uint8_t out[WEIR_MATROSKA_FRAME_HEAD], size_t track, uint64_t time_us, bool key, size_t len);
