// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// How a reader that begins in the past comes to the live edge: the packets from its join point on
// leave `rate` times as fast as they came, so a packet that came at `a` leaves at
//
//   max (a, begun + (a - from_arrival) / rate)
//
// and where timestamps are compressed, the RTP time `t` becomes
//
//   max (t, live_time + (t - from_time) / rate)
//
// Both lines meet those of the live edge once and never leave them again: the first picture shows
// at once, at the time of the live edge, the player runs through what has passed, and from then on
// nothing differs from the stream of a reader that was there before. Order is kept.

#include <stdbool.h>
#include <stdint.h>

typedef struct {
  int64_t begun_ns;     // when it began
  int64_t from_arrival; // of the packet with which it began
  int64_t from_time;    // of that packet, in RTP ticks
  int64_t live_time;    // of the live edge then
  int64_t rate;         // at least 2; 0: it is at the live edge
  bool compress;
} WeirJoin;

// A live_time before all others: nothing is compressed.
#define WEIR_LIVE_UNKNOWN (INT64_MIN / 2)

static inline int64_t
weir_join_due (const WeirJoin *join, int64_t arrival_ns)
{
  int64_t due = join->begun_ns + (arrival_ns - join->from_arrival) / join->rate;
  return due > arrival_ns ? due : arrival_ns;
}

static inline int64_t
weir_join_time (const WeirJoin *join, int64_t rtp_time)
{
  int64_t time = join->live_time + (rtp_time - join->from_time) / join->rate;
  return time > rtp_time ? time : rtp_time;
}
