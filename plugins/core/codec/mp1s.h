// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Cuts MPEG-1 system streams (ISO/IEC 11172-1) into payloads of RTP. Such a stream consists of
// packs: each has a header with its system clock reference (SCR), and units that have their length.
// Zero bytes may lie between.

#include "bits/bytes.h"

#define WEIR_MP1S_PACK_HEADER 12 // bytes; no other header has more
#define WEIR_MP1S_CLOCK 90000    // of the SCR, in Hz

// A cutter, zeroed at first. All fields are private.
typedef struct {
  size_t left;   // bytes of the unit whose beginning was sent last
  bool begun;    // the fields below are set
  uint64_t scr;  // of the pack whose beginning was sent last
  uint64_t time; // the same without wraps and jumps, from 0
} WeirMp1sCut;

typedef struct {
  size_t len;
  uint64_t time; // ticks from the first SCR to that of the payload's first pack, without jumps
  bool jump;     // that SCR is lower than the last one, or more than 10 s above
} WeirMp1sPayload;

// Returns how many bytes come before the next header of a pack, or all if there is none.
size_t weir_mp1s_find_pack (WeirBytes b);

// Measures the next payload: as many whole packs as fit into `room` bytes, at least 1, or of a pack
// that does not fit, `room` bytes or the rest. A jump begins a payload. `b` has the bytes behind
// the last payload: at least `room` + WEIR_MP1S_PACK_HEADER, or all up to the end of the stream,
// whose last unit may be cut. Returns false if no unit begins there.
bool weir_mp1s_cut_next (WeirMp1sCut *self, WeirBytes b, size_t room, WeirMp1sPayload *out);
