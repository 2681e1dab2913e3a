// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The inside of an estimator: estimate.c makes groups of what the reader tells, estimate_judge.c
// takes the state and the rate from the groups. All times here are in us.

#include "net/estimate.h"

#define WEIR_MS 1000 // us
#define WEIR_GROUP_US (100 * WEIR_MS)
#define WEIR_GROUPS 32 // at least 3 s

typedef struct {
  uint32_t arrival; // time in which its packets arrived
  uint32_t span;    // the longer of that and the time in which they were sent
  uint32_t bytes;   // that arrived
  uint32_t n;       // packets that arrived
  uint32_t lost;
  uint32_t delay; // queue delay
  uint32_t burst; // the highest rate of its bursts, kbit/s
} WeirEstimateGroup;

// Packets that were sent together.
typedef struct {
  unsigned n;
  uint32_t bytes;             // but those of the first packet
  int64_t departure, arrival; // of the first packet
  int64_t last_departure, last_arrival;
} WeirEstimateBurst;

// A least value of the last 10 to 20 s.
typedef struct {
  int64_t least, before; // of this period and the last one; INT64_MAX: none
  int64_t since;
} WeirEstimateBase;

struct WeirEstimate {
  // The reader's clock.
  bool begun;
  int64_t ticks;   // of the last packet that arrived, unwrapped
  int64_t newest;  // arrival of the newest packet
  int64_t heard;   // when the last feedback on packets that arrived came
  uint16_t number; // the highest number of those

  int64_t flood_since;
  unsigned flood_n;

  // The group that is not yet complete.
  WeirEstimateGroup open;
  int64_t open_arrival, open_departure; // of its first packet
  int64_t open_least;                   // (arrival - departure)
  WeirEstimateBase base;
  WeirEstimateBurst burst;

  WeirEstimateGroup groups[WEIR_GROUPS]; // number i is at i % WEIR_GROUPS
  uint64_t n_groups;
  uint64_t bound_from;   // groups before it do not count for the lower bound
  uint64_t stands_from;  // nor these for a queue that stands
  bool yielded;          // to a queue that stands
  uint64_t others_until; // such a queue is another flow's up to this group
  WeirEstimateState state;
  uint64_t congested_bits; // the estimate while congested

  uint64_t remb_bits;
  int64_t remb_until;

  WeirEstimateCounts counts;

  size_t ring;     // a power of two
  uint64_t sent[]; // number i is at i % ring; atomic
};

static inline int64_t
weir_estimate_base (const WeirEstimateBase *base)
{
  return base->least < base->before ? base->least : base->before;
}

// Adds a group, and finds the state anew.
void weir_estimate_judge (WeirEstimate *self, const WeirEstimateGroup *group);

// Forgets all groups.
void weir_estimate_forget (WeirEstimate *self);

// Returns what arrived, at most, in 200 ms since the last congestion, in bit/s.
uint64_t weir_estimate_bound (const WeirEstimate *self);

// Returns the rate at which packets arrived while they waited, in the last second, in bit/s; 0:
// none waited.
uint64_t weir_estimate_full (const WeirEstimate *self);

// Returns the highest rate of a burst since then.
uint64_t weir_estimate_burst (const WeirEstimate *self);

// Returns the loss of the last second, of 1000 packets.
unsigned weir_estimate_loss (const WeirEstimate *self);
