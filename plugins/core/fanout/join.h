// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Lets a reader that begins at an earlier join point catch up with the live edge. Packets leave
// `rate` times as fast as they arrived: a packet that arrived at `a` leaves at
//
//   max (a, begun + (a - from_arrival) / rate)
//
// With compressed timestamps, the RTP time `t` becomes
//
//   max (t, live_time + (t - from_time) / rate)
//
// Both reach the live edge once and stay there. The player shows the first picture at once, because
// it has the timestamp of the live edge, and plays the earlier packets fast. From then on the
// reader gets the same stream as every other reader. The order of packets is kept.

#include <stdbool.h>
#include <stdint.h>

typedef struct {
  int64_t rate;         // speed, at least 2; 0: at the live edge
  int64_t begun_ns;     // ns, when the reader began
  int64_t from_arrival; // ns, arrival of its first packet
  int64_t from_time;    // RTP time of that packet in ticks
  int64_t live_time;    // RTP time of the live edge at that moment
  bool compress;
} WeirJoin;

// A live_time that compresses nothing.
#define WEIR_LIVE_UNKNOWN (INT64_MIN / 2)

// Returns when a packet that arrived at `arrival_ns` leaves, in ns. `rate` must not be 0.
static inline int64_t
weir_join_due (const WeirJoin *join, int64_t arrival_ns)
{
  int64_t due = join->begun_ns + (arrival_ns - join->from_arrival) / join->rate;
  return due > arrival_ns ? due : arrival_ns;
}

// Returns the compressed RTP time in ticks. `rate` must not be 0.
static inline int64_t
weir_join_time (const WeirJoin *join, int64_t rtp_time)
{
  int64_t time = join->live_time + (rtp_time - join->from_time) / join->rate;
  return time > rtp_time ? time : rtp_time;
}
