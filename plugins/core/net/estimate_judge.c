// SPDX-License-Identifier: LGPL-2.1-or-later
#include "net/estimate_private.h"

#define DELAY_HIGH (200 * WEIR_MS)
#define DELAY_MUCH (50 * WEIR_MS)
#define DELAY_LITTLE (20 * WEIR_MS)

#define TREND_GROUPS 8    // at most
#define OTHERS_GROUPS 300 // for which other flows are expected after they were seen: 30 s or more
#define SMALL_SAMPLE 8    // packets; losses of fewer count less

// The last groups put together.
typedef struct {
  unsigned groups;
  uint64_t span, arrival;
  uint64_t bytes, n, lost;
} Sum;

static const WeirEstimateGroup *
nth_last (const WeirEstimate *self, uint64_t i)
{
  return &self->groups[(self->n_groups - 1 - i) % WEIR_GROUPS];
}

static uint64_t
n_kept (const WeirEstimate *self)
{
  return self->n_groups < WEIR_GROUPS ? self->n_groups : WEIR_GROUPS;
}

static void
add (Sum *sum, const WeirEstimateGroup *group)
{
  sum->groups++;
  sum->span += group->span;
  sum->arrival += group->arrival;
  sum->bytes += group->bytes;
  sum->n += group->n;
  sum->lost += group->lost;
}

// Sums the last groups, as many as cover `span`.
static Sum
sum_of (const WeirEstimate *self, uint64_t span)
{
  Sum sum = { 0 };

  for (uint64_t i = 0; i < n_kept (self) && sum.span < span; i++)
    add (&sum, nth_last (self, i));
  return sum;
}

// Sums the last groups whose delay is above `least`, at most `n`.
static Sum
sum_above (const WeirEstimate *self, uint32_t least, unsigned n)
{
  Sum sum = { 0 };

  for (uint64_t i = 0; i < n && i < n_kept (self) && nth_last (self, i)->delay > least; i++)
    add (&sum, nth_last (self, i));
  return sum;
}

static uint64_t
rate (uint64_t bytes, uint64_t span)
{
  return span > 0 ? bytes * 8 * 1000000 / span : 0;
}

// Reports whether the line was full: packets waited, or many were lost.
static bool
is_busy (const WeirEstimateGroup *group)
{
  return group->delay > DELAY_LITTLE || group->lost * 10 > group->n + group->lost;
}

// Sums the busy ones of the last groups that cover `span`. The line became full within the first
// one of several in a row, so that one is left out.
static Sum
sum_of_busy (const WeirEstimate *self, uint64_t span)
{
  Sum sum = { 0 };
  uint64_t covered = 0;

  for (uint64_t i = 0; i < n_kept (self) && covered < span; i++) {
    bool first = i + 1 < n_kept (self) && !is_busy (nth_last (self, i + 1));

    if (is_busy (nth_last (self, i)) && !(first && sum.groups > 0))
      add (&sum, nth_last (self, i));
    covered += nth_last (self, i)->span;
  }
  return sum;
}

// Returns the loss of 1000 packets. A few packets weigh less.
static unsigned
loss_of (const Sum *sum)
{
  return (unsigned) (sum->lost * 1000 / (sum->n + sum->lost + SMALL_SAMPLE));
}

static bool
loses (const WeirEstimate *self, uint64_t span, unsigned loss)
{
  Sum sum = sum_of (self, span);

  return sum.span >= span && loss_of (&sum) > loss;
}

// Reports whether the delay of the last `n` groups rises: Kendall's tau is above 0.8.
static bool
rises (const WeirEstimate *self, unsigned n)
{
  int score = 0, pairs = 0;

  for (unsigned late = 0; late < n; late++) {
    for (unsigned early = late + 1; early < n; early++, pairs++) {
      uint32_t before = nth_last (self, early)->delay, after = nth_last (self, late)->delay;

      score += (after > before) - (after < before);
    }
  }
  return score * 10 > pairs * 8;
}

// Reports whether the delay of the last `n` groups, which arrived in `span`, grows by 3 % of the
// time: one packet in 33 more comes than the line carries. What other flows do is slower.
static bool
grows (const WeirEstimate *self, unsigned n, uint64_t span)
{
  uint32_t first = nth_last (self, n - 1)->delay, last = nth_last (self, 0)->delay;

  return last > first && (uint64_t) (last - first) * 33 > span && rises (self, n);
}

static bool
queue_grows (const WeirEstimate *self)
{
  Sum much = sum_above (self, DELAY_MUCH, TREND_GROUPS), high = sum_above (self, DELAY_HIGH, 2);

  return (high.groups >= 2 && grows (self, high.groups, high.span))
         || (much.groups >= 4 && much.span >= 400 * WEIR_MS
             && grows (self, much.groups, much.span));
}

// Reports whether packets have waited for 50 ms or more in the last 2 s, all of it since the last
// answer to that.
static bool
stands (const WeirEstimate *self)
{
  uint64_t since = self->n_groups - self->stands_from;
  Sum sum = sum_above (self, DELAY_MUCH, since < WEIR_GROUPS ? (unsigned) since : WEIR_GROUPS);

  return sum.span >= 2000 * WEIR_MS;
}

static bool
is_clear (const WeirEstimate *self)
{
  Sum sum = sum_of (self, 500 * WEIR_MS);

  for (unsigned i = 0; i < sum.groups; i++) {
    if (nth_last (self, i)->delay >= DELAY_LITTLE)
      return false;
  }
  return sum.span >= 500 * WEIR_MS && loss_of (&sum) < 100;
}

uint64_t
weir_estimate_full (const WeirEstimate *self)
{
  Sum full = sum_of_busy (self, 1000 * WEIR_MS);

  return rate (full.bytes, full.arrival);
}

// Takes the rate at which packets arrive while the line is full.
static void
congest (WeirEstimate *self)
{
  self->state = WEIR_ESTIMATE_CONGESTED;
  self->congested_bits = weir_estimate_full (self);
  self->bound_from = self->n_groups;
}

static bool
is_lossy (const WeirEstimate *self)
{
  return loses (self, 600 * WEIR_MS, 250)
         || (loses (self, 2000 * WEIR_MS, 100) && loses (self, 600 * WEIR_MS, 100));
}

// Takes the least delay of the last groups as the line's own.
static void
accept_delay (WeirEstimate *self)
{
  uint32_t least = UINT32_MAX;

  for (uint64_t i = 0; i < n_kept (self) && i < 20; i++)
    least = nth_last (self, i)->delay < least ? nth_last (self, i)->delay : least;
  for (uint64_t i = 0; i < n_kept (self); i++)
    self->groups[i].delay -= self->groups[i].delay < least ? self->groups[i].delay : least;
  self->base.least = weir_estimate_base (&self->base) + least;
  self->base.before = INT64_MAX;
}

static void
clear (WeirEstimate *self)
{
  self->state = WEIR_ESTIMATE_CLEAR;
  self->yielded = false;
}

static bool
is_warned (const WeirEstimate *self)
{
  Sum much = sum_above (self, DELAY_MUCH, 4);

  return much.groups >= 2 && much.span >= 200 * WEIR_MS;
}

// Reports whether the delay has fallen to less than three quarters in the last 2 s.
static bool
drains (const WeirEstimate *self)
{
  uint32_t most = 0;

  for (uint64_t i = 0; i < 20 && i < n_kept (self); i++)
    most = nth_last (self, i)->delay > most ? nth_last (self, i)->delay : most;
  return nth_last (self, 0)->delay < most - most / 4;
}

// A queue that stands may be ours, so the estimate gives way once, unless the queue drains: while
// others send more than this stream, its own rate says nothing about the line. If it stands
// nevertheless, other flows make it: for some time it belongs to the line, or this stream would
// give way to them for ever.
static void
judge_standing (WeirEstimate *self)
{
  bool others = self->yielded || self->n_groups < self->others_until;

  self->stands_from = self->n_groups;
  self->yielded = !others;
  if (others) {
    self->others_until = self->n_groups + OTHERS_GROUPS;
    accept_delay (self);
  } else if (!drains (self)) {
    congest (self);
  }
}

static void
find_state (WeirEstimate *self)
{
  bool busy = is_busy (nth_last (self, 0));

  if (busy && (queue_grows (self) || is_lossy (self)))
    congest (self);
  else if (stands (self))
    judge_standing (self);
  else if (self->state == WEIR_ESTIMATE_CONGESTED && !busy)
    self->state = WEIR_ESTIMATE_WARNING;
  else if (self->state == WEIR_ESTIMATE_WARNING && is_clear (self))
    clear (self);
  else if (self->state == WEIR_ESTIMATE_CLEAR && is_warned (self))
    self->state = WEIR_ESTIMATE_WARNING;
}

void
weir_estimate_judge (WeirEstimate *self, const WeirEstimateGroup *group)
{
  self->groups[self->n_groups++ % WEIR_GROUPS] = *group;
  find_state (self);
}

void
weir_estimate_forget (WeirEstimate *self)
{
  self->open = (WeirEstimateGroup) { 0 };
  self->burst = (WeirEstimateBurst) { 0 };
  self->base = (WeirEstimateBase) { INT64_MAX, INT64_MAX, 0 };
  self->n_groups = self->bound_from = self->stands_from = self->others_until = 0;
  self->yielded = false;
  self->state = WEIR_ESTIMATE_CLEAR;
}

uint64_t
weir_estimate_bound (const WeirEstimate *self)
{
  uint64_t since = self->n_groups - self->bound_from, best = 0;

  since = since < n_kept (self) ? since : n_kept (self);
  for (uint64_t i = 0; i + 1 < since; i++) {
    Sum sum = { 0 };
    uint64_t bits;

    add (&sum, nth_last (self, i));
    add (&sum, nth_last (self, i + 1));
    bits = rate (sum.bytes, sum.span);
    best = bits > best ? bits : best;
  }
  return best;
}

uint64_t
weir_estimate_burst (const WeirEstimate *self)
{
  uint64_t since = self->n_groups - self->bound_from;
  uint32_t best = 0;

  for (uint64_t i = 0; i < since && i < n_kept (self); i++)
    best = nth_last (self, i)->burst > best ? nth_last (self, i)->burst : best;
  return (uint64_t) best * 1000;
}

unsigned
weir_estimate_loss (const WeirEstimate *self)
{
  Sum sum = sum_of (self, 1000 * WEIR_MS);

  return loss_of (&sum);
}
