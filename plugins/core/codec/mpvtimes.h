// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Gives frames of MPEG-1 and MPEG-2 video their times of presentation, from those of frames before
// and from the temporal references (ISO/IEC 11172-2, 2.4.3.4): a program stream has a time for the
// first frame of a PES packet only, an elementary stream has none.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Zeroed at first. All fields are private.
typedef struct {
  bool known;      // the fields below are set
  int64_t zero;    // when temporal reference 0 of this group of pictures is presented
  int64_t last;    // temporal reference of the last frame, unwrapped within the group
  int64_t highest; // of the group
} WeirMpvTimes;

// Notes that a frame, with the headers before it, is presented at `pts`. Times are in ns, here and
// below; `duration` is that of one frame, at most 10 s.
void weir_mpv_times_note (
    WeirMpvTimes *self, const uint8_t *frame, size_t len, int64_t pts, int64_t duration);

// Finds out when a frame without a time is presented. Returns false, and leaves `pts`, if the frame
// has no picture header, or if no time was noted before.
bool weir_mpv_times_find (
    WeirMpvTimes *self, const uint8_t *frame, size_t len, int64_t duration, int64_t *pts);
