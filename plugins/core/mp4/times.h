// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The times of one file of fragmented MP4 that is a piece of a longer stream. Its decode times
// begin at 0. A box WEIR in the udta of its beginning has the clock, and which times of the stream
// its own ones are. Players read the creation time and the duration.
//
// There is no edit list, which would take away the time by which the first picture of a reordered
// stream is shown later than it is decoded: with one, qtdemux of GStreamer 1.22 gives no picture of
// a fragmented file after a seek.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mp4/read.h"

// All zero: the times are those of the stream.
typedef struct {
  uint64_t wall_us;                    // UTC of the file's time 0, us since the epoch
  uint64_t duration_ms;                // 0: not known yet
  uint64_t bases[WEIR_MP4_TRACKS_MAX]; // the stream's time at the file's time 0, in units of the
                                       // track's timescale
} WeirMp4Times;

// Writes the times into the beginning of a file, of weir_mp4_write_file_init(). Other beginnings
// have no room for them, and stay as they are.
void weir_mp4_set_times (uint8_t *data, size_t size, const WeirMp4Times *times);

// Reads the times of a beginning; zeros if it has none. Returns 0, or -EINVAL if they are so great
// that sums with them could overflow.
int weir_mp4_get_times (const uint8_t *data, size_t size, WeirMp4Times *times);
