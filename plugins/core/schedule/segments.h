// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Cuts a title into the segments of a periodic broadcast. Each segment is sent again and again on a
// group of its own, at the title's rate. A client plays from a multiple of the first segment's
// length after the schedule's base, and receives of each segment the last transmission that starts
// before the segment's first frame is due.
//
// GDB        lengths 1, 2, 4, 8, ... times the first (L. Gao, J. Kurose, D. Towsley, "Efficient
//            schemes for broadcasting popular videos", NOSSDAV 1998); the fewest groups
// GREEDY     each length as great a multiple of the one before as a client that receives `at_once`
//            groups at a time can follow, with the starts moved against each other: for 2 groups 1,
//            2, 4, 4, 8, 8, ..., for 3 or more the lengths of GDB
// SKYSCRAPER lengths 1, 2, 2, 5, 5, 12, 12, 25, 25, 52, 52, ... up to `longest`, for clients that
//            receive two groups at a time (K. Hua, S. Sheu, "Skyscraper broadcasting", SIGCOMM
//            1997)
// STAGGERED  the whole title on each group, started one first segment's length apart
//
// The last segment is cut short by the end of the title, and repeated as if it were not.

#include <stdint.h>

#define WEIR_SEGMENTS_MAX 256

typedef enum {
  WEIR_CUT_GDB,
  WEIR_CUT_GREEDY,
  WEIR_CUT_SKYSCRAPER,
  WEIR_CUT_STAGGERED,
} WeirCut;

typedef struct {
  uint32_t from, to; // frames; `to` is not part of it
  uint64_t period;   // frames between two starts, at least the length
  uint64_t phase;    // frames from the schedule's base to a start, less than the period
} WeirSegment;

// Cuts `n_frames` frames, with `first` frames in the first segment, or for STAGGERED between two
// starts (1 to `n_frames`). `at_once`: see GREEDY; 0: no limit. `longest`: the greatest length for
// SKYSCRAPER in frames, 0: no limit. Returns the number of segments, -EINVAL if a number is out of
// range, or -E2BIG for more than WEIR_SEGMENTS_MAX segments, or for GREEDY a title of more than
// 1024 times `first`.
int weir_segments_cut (WeirCut cut, uint32_t n_frames, uint32_t first, uint32_t at_once,
    uint32_t longest, WeirSegment segments[WEIR_SEGMENTS_MAX]);

// Returns the rate at which frames are read to send these segments, relative to one stream of the
// title, while the title's first `cached` frames are in memory. With 0 this is also the sending
// rate. LFU keeps such a prefix (Bradshaw et al., appendix A).
double weir_segments_streams (const WeirSegment *segments, int n_segments, uint32_t cached);
