// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// RTP timestamps made monotone, for sources whose clock jumps, goes back or stands still. Between
// two faults the distances are the source's own; across one the timestamps go on by the time that
// passed at the arrival. Packets are ordered by their sequence numbers: one that comes late gets
// what it would have got in time.
//
// In a stream with B-frames timestamps go back by design, so it must not be restamped.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rtp/rtp.h"

#define WEIR_RESTAMP_HISTORY 16

typedef enum {
  WEIR_RESTAMP_AS_IT_CAME, // goes on from the packet before
  WEIR_RESTAMP_JUMP,       // ahead by more than the limit beyond the time that passed
  WEIR_RESTAMP_BACK,       // a step back
  WEIR_RESTAMP_STALL,      // behind by more than the limit, or standing still since
  WEIR_RESTAMP_SOURCE,     // another SSRC: other timestamps altogether
} WeirRestampFault;
#define WEIR_RESTAMP_N_FAULTS 5

typedef struct {
  uint32_t clock_rate; // Hz
  int64_t limit;       // ns
  bool frames_marked;  // a marker ends a frame (video); else each packet is one (audio)
  bool begun;
  uint32_t ssrc;
  int64_t seq;       // the highest, unwrapped
  uint32_t in;       // its timestamp as it came
  uint32_t out;      // and as it went
  int64_t advanced;  // ns, the arrival at which the timestamp went on
  bool frame_ended;  // the highest packet was the last of its frame
  bool stands_still; // since then each frame goes by its arrival
  // Where repairs were made, newest at (n_repairs - 1) % WEIR_RESTAMP_HISTORY.
  struct {
    int64_t seq;     // from this one on
    uint32_t offset; // out - in
  } repairs[WEIR_RESTAMP_HISTORY];
  uint64_t n_repairs;
  uint64_t count[WEIR_RESTAMP_N_FAULTS]; // packets in order, by WeirRestampFault
  uint64_t n_late;
} WeirRestamp;

// `clock_rate` in Hz; 0 is taken as 90000.
void weir_restamp_init (
    WeirRestamp *restamp, uint32_t clock_rate, int64_t limit, bool frames_marked);

// The timestamp of a packet that arrives at `now` (ns).
uint32_t weir_restamp_map (WeirRestamp *restamp, const WeirRtp *rtp, int64_t now);
