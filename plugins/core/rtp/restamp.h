// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Makes the RTP timestamps of a stream monotone, for sources whose clock jumps, goes back or stands
// still. Between two faults, timestamps advance as the source's do. At a fault, the timestamp
// advances by the time between the arrivals. Packets are ordered by sequence number: a packet that
// arrives late gets the timestamp that it would have had on time.
//
// Do not restamp a stream with B-frames: its timestamps go back by design.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rtp/rtp.h"

#define WEIR_RESTAMP_HISTORY 16

typedef enum {
  WEIR_RESTAMP_AS_IT_CAME, // no fault
  WEIR_RESTAMP_JUMP,       // advanced too far: more than the time between the arrivals plus `limit`
  WEIR_RESTAMP_BACK,       // lower than the timestamp before
  WEIR_RESTAMP_STALL,      // advanced too little: less than that time minus `limit`; or unchanged
                           // since such a fault
  WEIR_RESTAMP_SOURCE,     // the SSRC changed, so the timestamps are unrelated
} WeirRestampFault;
#define WEIR_RESTAMP_N_FAULTS 5

typedef struct {
  uint32_t clock_rate; // Hz
  int64_t limit;       // ns, tolerance of the faults above
  bool frames_marked;  // true: a marker bit ends a frame (video); else each packet does
  bool begun;
  uint32_t ssrc;
  int64_t seq;       // highest sequence number, unwrapped
  uint32_t in;       // incoming timestamp of that packet
  uint32_t out;      // outgoing timestamp of that packet
  int64_t advanced;  // ns, arrival time at which `out` last advanced
  bool frame_ended;  // the highest packet ended its frame
  bool stands_still; // the source's timestamps stand still: each frame is stamped by its arrival
  // The last repairs, newest at (n_repairs - 1) % WEIR_RESTAMP_HISTORY.
  struct {
    int64_t seq;     // first sequence number it applies to
    uint32_t offset; // out - in
  } repairs[WEIR_RESTAMP_HISTORY];
  uint64_t n_repairs;
  uint64_t count[WEIR_RESTAMP_N_FAULTS]; // packets in order, counted by WeirRestampFault
  uint64_t n_late;                       // packets that came late
} WeirRestamp;

// Starts a stream. `clock_rate` is in Hz (0 means 90000); `limit` is in ns.
void weir_restamp_init (
    WeirRestamp *restamp, uint32_t clock_rate, int64_t limit, bool frames_marked);

// Returns the outgoing timestamp of a packet that arrives at `now` (ns, on any clock that does not
// go back).
uint32_t weir_restamp_map (WeirRestamp *restamp, const WeirRtp *rtp, int64_t now);
