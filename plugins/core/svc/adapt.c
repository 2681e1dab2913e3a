// SPDX-License-Identifier: LGPL-2.1-or-later
#include "svc/adapt.h"

#include <string.h>

#include "run/random.h"

#define SECOND 1000000000LL

#define LOSS_NONE 0.02
#define LOSS_MUCH 0.10
#define LOSS_COLLAPSE (1.0 / 3) // above it the line has changed: half the loss is too slow
#define GROWTH 1.08
#define WAIT_MIN (8 * SECOND)
#define WAIT_SPREAD (2 * SECOND)
#define FAILURES_MAX 4
#define TRIAL 2     // reports after which a rise counts as successful
#define PATIENCE 10 // reports

#define LAG_SOME (100 * SECOND / 1000)
#define LAG_MUCH (250 * SECOND / 1000)
#define LOSS_OF_LAG_SOME 0.05
#define LOSS_OF_LAG_MUCH 0.11

// ---- the ladder ----

static bool
is_within (WeirLayerSet limit, const WeirLayerRate *layer)
{
  return weir_layer_set_has (limit, layer->spatial, layer->quality, layer->temporal);
}

static size_t
add_step (WeirAdaptStep *steps, size_t n, WeirLayerSet set, double bitrate)
{
  size_t at = n;

  while (at > 0 && steps[at - 1].bitrate > bitrate)
    at--;
  // A set with the same bitrate has no further data.
  if (n == WEIR_ADAPT_STEPS || (at > 0 && steps[at - 1].bitrate == bitrate))
    return n;
  memmove (&steps[at + 1], &steps[at], (n - at) * sizeof *steps);
  steps[at] = (WeirAdaptStep) { set, bitrate };
  return n + 1;
}

size_t
weir_adapt_ladder (const WeirRates *rates, WeirLayerSet limit, WeirAdaptStep *steps)
{
  size_t n = 0;

  // Each layer is the highest layer of one set.
  for (size_t i = 0; i < rates->n; i++) {
    const WeirLayerRate *layer = &rates->layers[i];
    const WeirLayerSet set = { .spatial = (int8_t) layer->spatial,
      .temporal = (int8_t) layer->temporal,
      .quality = (int8_t) layer->quality };

    if (is_within (limit, layer))
      n = add_step (steps, n, set, weir_rates_of (rates, set, false));
  }
  return n;
}

// Returns the highest step within a bitrate, or the lowest step.
static size_t
step_within (const WeirAdaptStep *steps, size_t n, double bitrate)
{
  size_t at = 0;

  while (at + 1 < n && steps[at + 1].bitrate <= bitrate)
    at++;
  return at;
}

// Returns the reader's step. A set that is not on the ladder, such as all layers, counts as the
// highest step.
static size_t
step_of (const WeirAdaptStep *steps, size_t n, WeirLayerSet set)
{
  for (size_t i = 0; i < n; i++) {
    if (weir_layer_set_equal (steps[i].set, set))
      return i;
  }
  return n - 1;
}

// ---- reading a report ----

typedef struct {
  double sent; // bits per second
  double loss; // from 0 to 1
} Measured;

static Measured
measure (const WeirAdaptReport *report, int64_t time_ns, double bitrate)
{
  Measured m = { .sent = (double) report->bytes * 8 * SECOND / (double) time_ns };
  uint64_t lost = report->lost < report->packets ? report->lost : report->packets;

  if (!report->lags) {
    m.loss = report->packets > 0 ? (double) lost / (double) report->packets : 0;
  } else if (report->lag_ns >= LAG_MUCH) {
    m.loss = bitrate > m.sent ? 1 - m.sent / bitrate : 0;
    m.loss = m.loss > LOSS_OF_LAG_MUCH ? m.loss : LOSS_OF_LAG_MUCH;
    m.sent = bitrate > m.sent ? bitrate : m.sent;
  } else if (report->lag_ns >= LAG_SOME) {
    m.loss = LOSS_OF_LAG_SOME;
  }
  return m;
}

// ---- the policies; each returns the step to take ----

static size_t
bandwidth (const WeirAdaptStep *steps, size_t n, size_t at, const Measured *m)
{
  double arrived = m->sent * (1 - m->loss);
  size_t target = step_within (steps, n, arrived);

  if (steps[target].bitrate <= arrived && target + 1 < n)
    target++;
  return target > at ? at + 1 : target < at ? at - 1 : at;
}

static int64_t
wait_time (WeirAdapt *self)
{
  return (WAIT_MIN << self->n_failures) + (int64_t) weir_random_draw (&self->random) % WAIT_SPREAD;
}

// Returns the number of reports in a row with some loss after which a reader gives way. A reader
// that has less waits longer, so that readers on the same line converge.
static unsigned
patience (const WeirAdaptStep *steps, size_t n, size_t at)
{
  return 2 + (unsigned) (PATIENCE * (1 - steps[at].bitrate / steps[n - 1].bitrate));
}

static size_t
give_way (WeirAdapt *self, int64_t now_ns, const WeirAdaptStep *steps, size_t n, size_t at,
    const Measured *m)
{
  double allowed = m->sent * (1 - (m->loss > LOSS_COLLAPSE ? m->loss : m->loss / 2));
  size_t below = at > 0 ? at - 1 : 0, to = at;

  if (m->loss > LOSS_MUCH)
    to = step_within (steps, n, allowed);
  if (to >= at && self->rose && self->n_since <= TRIAL)
    to = below;
  else if (to >= at)
    to = ++self->n_lossy * (self->rose ? 2 : 1) >= patience (steps, n, at) ? below : at;
  self->n_failures += to < at && self->rose && self->n_failures < FAILURES_MAX;
  self->allowed = steps[to].bitrate;
  self->grow_ns = now_ns + wait_time (self);
  return to;
}

static size_t
allow_more (WeirAdapt *self, int64_t now_ns, const WeirAdaptStep *steps, size_t n, size_t at)
{
  self->n_lossy = 0;
  if (self->rose && self->n_since > TRIAL)
    self->n_failures = 0;
  if (at + 1 == n)
    return at;
  if (self->allowed < steps[at].bitrate)
    self->allowed = steps[at].bitrate;
  self->allowed *= GROWTH;
  if (self->allowed < steps[at + 1].bitrate)
    return at;
  self->allowed = steps[at + 1].bitrate;
  if (now_ns < self->grow_ns)
    return at;
  self->grow_ns = now_ns + wait_time (self);
  return at + 1;
}

static size_t
aimd (WeirAdapt *self, int64_t now_ns, const WeirAdaptStep *steps, size_t n, size_t at,
    const Measured *m)
{
  size_t to;

  self->n_since++;
  to = m->loss < LOSS_NONE ? allow_more (self, now_ns, steps, n, at)
                           : give_way (self, now_ns, steps, n, at, m);
  if (to != at) {
    self->rose = to > at;
    self->n_since = self->n_lossy = 0;
  }
  return to;
}

void
weir_adapt_init (WeirAdapt *self, WeirAdaptPolicy policy, WeirLayerSet wanted, uint32_t seed)
{
  *self = (WeirAdapt) { .policy = policy, .now = wanted, .random = seed ? seed : 1 };
}

WeirLayerSet
weir_adapt_report (WeirAdapt *self, int64_t now_ns, const WeirAdaptReport *report,
    const WeirAdaptStep *steps, size_t n_steps)
{
  int64_t time_ns = now_ns - self->last_ns;
  bool first = !self->begun;
  size_t at, to;
  Measured m;

  self->begun = true;
  self->last_ns = now_ns;
  if (first || time_ns <= 0 || n_steps == 0 || self->policy == WEIR_ADAPT_FIXED
      || (report->packets == 0 && !report->lags))
    return self->now;
  at = step_of (steps, n_steps, self->now);
  m = measure (report, time_ns, steps[at].bitrate);
  if (self->policy == WEIR_ADAPT_BANDWIDTH)
    to = bandwidth (steps, n_steps, at, &m);
  else
    to = aimd (self, now_ns, steps, n_steps, at, &m);
  self->now = steps[to].set;
  return self->now;
}
