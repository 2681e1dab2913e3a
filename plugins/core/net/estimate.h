// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Estimates what the line to one reader carries, from the reader's feedback on each packet.
//
// Packets that arrived are put together to groups of 100 ms. A group's queue delay is the least
// (arrival - departure) of its packets, above the least of the last 10 to 20 s: so the two clocks
// need not agree, and may drift. The shape is that of LiveKit's send-side detector.
//
// - congested: the delay is above 50 ms and rises for 400 ms (by Kendall's tau), or is above 200 ms
//   in two groups and rises; or more than 25 % is lost for 600 ms, or more than 10 % for 2 s. It
//   lasts as long as packets wait for 20 ms or are lost.
// - warning: the delay is above 50 ms for 200 ms, or the line was congested. Do not rise, probe or
//   resend.
// - clear: 500 ms with a delay below 20 ms and a loss below 10 %.
//
// While congested, the estimate is the rate at which packets arrived while the line was full, over
// at most 1 s. Else it is a lower bound: the highest rate that arrived in any 200 ms of the last
// seconds. This bound never exceeds what was sent, whatever the reader says.
//
// `now` is any monotonic clock, in ns; it may also step, which costs the estimate of a few seconds.
// weir_estimate_sent() may be called by many threads at a time. All other functions belong to one
// thread at a time, which may run beside those.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rtp/feedback.h"

#define WEIR_ESTIMATE_RING 1024 // packets that are remembered, as a rule

typedef struct WeirEstimate WeirEstimate;

// Creates an estimator that remembers the last `ring` packets sent, 8 bytes each: a power of two up
// to 32768. Returns NULL without memory. All else allocates nothing.
WeirEstimate *weir_estimate_new (size_t ring);
void weir_estimate_free (WeirEstimate *self);

// Notes that the packet with the transport-wide number `number`, of `size` bytes, was sent. Numbers
// go up by one a packet and wrap.
void weir_estimate_sent (WeirEstimate *self, uint16_t number, size_t size, int64_t now);

// Takes feedback that came at `now`. Packets that were not sent, or are forgotten, are counted
// only.
void weir_estimate_feedback (WeirEstimate *self, const WeirFeedback *feedback, int64_t now);

// Takes what the reader asks for by REMB. It only lowers the estimate, for 5 s.
void weir_estimate_remb (WeirEstimate *self, uint64_t bits, int64_t now);

// What is known of a TCP connection between two looks at its socket (net/tcp_line.h).
typedef struct {
  int64_t span_ns;       // between them
  uint64_t bytes;        // that arrived
  int64_t wait_ns;       // for which bytes wait in the socket before they are sent
  int64_t round_trip_ns; // of those that are sent
} WeirEstimateTcp;

// Takes a span as a group of packets, of which none was lost. Its queue delay is the wait and what
// the round trip is above its least. What waits in the socket is no other flow's.
void weir_estimate_tcp (WeirEstimate *self, const WeirEstimateTcp *span, int64_t now);

typedef enum {
  WEIR_ESTIMATE_CLEAR,
  WEIR_ESTIMATE_WARNING,
  WEIR_ESTIMATE_CONGESTED
} WeirEstimateState;

typedef struct {
  WeirEstimateState state;
  uint64_t bits; // bit/s; 0: not known
  bool is_lower_bound;
  int64_t queue_ns; // queue delay of the last group
  unsigned loss;    // of 1000 packets of the last second
  // The rate at which packets arrived while they waited, in the last second; 0: they did not wait.
  uint64_t full_bits;
  // The highest rate at which packets that were sent together arrived in the last seconds; 0: not
  // known. It is a hint only: a line may carry some packets faster than many.
  uint64_t burst_bits;
} WeirEstimateView;

// Returns what is known at `now`. A reader whose feedback has told of no packet that arrived for 1
// s while packets are sent is congested.
WeirEstimateView weir_estimate_view (WeirEstimate *self, int64_t now);

typedef struct {
  uint64_t feedbacks;
  uint64_t arrived, lost; // packets
  uint64_t unknown; // packets told of that were not sent, are forgotten, or were told of before
  uint64_t refused; // feedback beyond 200 a second, not read
  uint64_t steps;   // steps of a clock
} WeirEstimateCounts;

WeirEstimateCounts weir_estimate_counts (const WeirEstimate *self);
