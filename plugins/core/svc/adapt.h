// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Chooses the layers that the line to a reader can carry, from the reader's reports. There are
// three policies:
//
// - fixed: the wanted layers, whatever the line does.
// - bandwidth: the line's capacity is taken as the bit rate that arrived (sent, times the fraction
//   received). The reader gets the lowest layer set above that rate, so that it notices when the
//   line becomes wider. It moves one step per report.
// - aimd: below 2 % loss the reader's allowance grows by 8 % per report. Above 10 % it shrinks by
//   half the loss, or to the bit rate that arrived if more than a third was lost; the reader gets
//   the highest set within it. Between 2 % and 10 % the reader goes down one step: at once if it
//   has just gone up, else if the loss lasts. A reader with more layers gives way sooner, so that
//   readers on the same line converge. After a loss the reader does not go up for 8 to 10 s (at
//   random, so that readers do not move together); each rise that failed doubles that time, up to
//   four times.
//
// Over TCP nothing is lost, but a reader can lag. A lag of 100 ms counts as 5 % loss; a lag of 250
// ms counts as 11 %, or as the fraction of its layers' bit rate that was not sent, if that is more.
//
// Layers that are left out take no sequence numbers, so they never count as loss.
//
// A WeirAdapt belongs to one thread at a time.

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

// Lists the layer sets within `limit` by bitrate, the lowest first, one for each bitrate. `steps`
// has room for WEIR_ADAPT_STEPS. Returns how many there are.
size_t weir_adapt_ladder (const WeirRates *rates, WeirLayerSet limit, WeirAdaptStep *steps);

// The counts since the last report.
typedef struct {
  uint64_t bytes, packets; // sent
  uint64_t lost;           // of those packets, by the reader's report
  bool lags;               // the reader is on TCP: use `lag_ns` instead of `lost`
  int64_t lag_ns;
} WeirAdaptReport;

typedef struct {
  WeirAdaptPolicy policy;
  uint32_t random;
  bool begun;
  int64_t last_ns;     // time of the last report
  WeirLayerSet now;    // the layers that the reader gets
  double allowed;      // aimd: the reader's allowance in bits per second
  int64_t grow_ns;     // aimd: earliest time of the next rise
  unsigned n_failures; // aimd: rises in a row that failed
  unsigned n_since;    // aimd: reports since the last change
  unsigned n_lossy;    // aimd: reports in a row with some loss
  bool rose;           // aimd: the last change was a rise
} WeirAdapt;

// Starts with the layers `wanted`. `seed` should differ from reader to reader.
void weir_adapt_init (WeirAdapt *self, WeirAdaptPolicy policy, WeirLayerSet wanted, uint32_t seed);

// Takes the report that came at `now_ns`, with the steps of weir_adapt_ladder(). Returns the layers
// that the reader gets from now on.
WeirLayerSet weir_adapt_report (WeirAdapt *self, int64_t now_ns, const WeirAdaptReport *report,
    const WeirAdaptStep *steps, size_t n_steps);
