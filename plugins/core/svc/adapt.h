// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Which layers a reader's line carries, by what its reports say. Three policies:
//
// - fixed: what is wanted, whatever the line does.
// - bandwidth: the line carries what arrived (what was sent, times the fraction received), and the
//   reader gets the first set of layers that takes more than that: by overshooting it learns of a
//   line that became wider. One step a report.
// - aimd: under 2 % of loss what the reader may get grows by 8 % a report, over 10 % it shrinks by
//   half the loss, or to what arrived if that was less than two thirds; the reader gets the highest
//   set within it. Between 2 % and 10 % it goes down a step: at once who has just gone up, else if
//   that lasts, and sooner who has much, so that readers who share a line come closer to each
//   other. After a loss it waits for 8 to 10 s before it goes up again, not the same time for all,
//   and twice as long after each rise that failed.
//
// Over TCP nothing is lost, but a reader lags. A lag counts as loss: 5 % from 100 ms on; from 250
// ms on 11 %, or the part of what its layers take that did not go out, if that is more.
//
// Layers that are left out take no sequence numbers, so they are never loss.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svc/layerset.h"
#include "svc/rates.h"

typedef enum { WEIR_ADAPT_FIXED, WEIR_ADAPT_BANDWIDTH, WEIR_ADAPT_AIMD } WeirAdaptPolicy;

typedef struct {
  WeirLayerSet set;
  double bitrate; // bits per second
} WeirAdaptStep;

#define WEIR_ADAPT_STEPS 64

// The sets of layers within `limit`, by their bitrates, the lowest first. Returns how many.
size_t weir_adapt_ladder (const WeirRates *rates, WeirLayerSet limit, WeirAdaptStep *steps);

// What happened since the report before.
typedef struct {
  uint64_t bytes, packets; // sent
  uint64_t lost;           // of the packets, by the reader's account
  bool lags;               // over TCP: `lag_ns` in the place of `lost`
  int64_t lag_ns;
} WeirAdaptReport;

typedef struct {
  WeirAdaptPolicy policy;
  uint32_t random;
  bool begun;
  int64_t last_ns;     // of the last report
  WeirLayerSet now;    // what the reader gets
  double allowed;      // aimd: bits per second that it may get
  int64_t grow_ns;     // aimd: not before
  unsigned n_failures; // aimd: rises in a row that had to be taken back
  unsigned n_since;    // aimd: reports since the last change
  unsigned n_lossy;    // aimd: reports in a row with some loss
  bool rose;           // aimd: the last change was a rise
} WeirAdapt;

// `wanted` is what the reader gets to begin with. `seed` should differ from reader to reader.
void weir_adapt_init (WeirAdapt *self, WeirAdaptPolicy policy, WeirLayerSet wanted, uint32_t seed);

// A report came. Returns the layers that the reader is to get from now on.
WeirLayerSet weir_adapt_report (WeirAdapt *self, int64_t now_ns, const WeirAdaptReport *report,
    const WeirAdaptStep *steps, size_t n_steps);
