// SPDX-License-Identifier: LGPL-2.1-or-later
#include "net/estimate_private.h"

#define DELAY_HIGH (200 * WEIR_MS)
#define DELAY_MUCH (50 * WEIR_MS)
#define DELAY_LITTLE (20 * WEIR_MS)

#define TREND_GROUPS 8 // at most
#define SMALL_SAMPLE 8 // packets; losses of fewer count less

// The last groups put together.
typedef struct {
  unsigned groups;
  uint64_t span;
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

// Sums the last groups whose delay is above `least`, as many as cover `span`.
static Sum
sum_above (const WeirEstimate *self, uint32_t least, uint64_t span)
{
  Sum sum = { 0 };

  for (uint64_t i = 0; i < n_kept (self) && sum.span < span && nth_last (self, i)->delay > least;
      i++)
    add (&sum, nth_last (self, i));
  return sum;
}

static uint64_t
bits_of (const Sum *sum)
{
  return sum->span > 0 ? sum->bytes * 8 * 1000000 / sum->span : 0;
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

static bool
queue_grows (const WeirEstimate *self)
{
  Sum much = sum_above (self, DELAY_MUCH, UINT64_MAX),
      high = sum_above (self, DELAY_HIGH, UINT64_MAX);

  if (high.groups >= 2 && rises (self, 2))
    return true;
  return much.groups >= 4 && much.span >= 400 * WEIR_MS
         && rises (self, much.groups < TREND_GROUPS ? much.groups : TREND_GROUPS);
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

static void
congest (WeirEstimate *self, const Sum *measured)
{
  self->state = WEIR_ESTIMATE_CONGESTED;
  self->congested_bits = bits_of (measured);
  self->bound_from = self->n_groups;
}

static void
find_state (WeirEstimate *self)
{
  Sum queued = sum_above (self, DELAY_LITTLE, 1000 * WEIR_MS),
      recent = sum_of (self, 600 * WEIR_MS);
  Sum warned = sum_above (self, DELAY_MUCH, UINT64_MAX);

  if (queue_grows (self))
    congest (self, &queued);
  else if (loses (self, 600 * WEIR_MS, 250) || loses (self, 2000 * WEIR_MS, 100))
    congest (self, &recent);
  else if (self->state != WEIR_ESTIMATE_CLEAR && is_clear (self))
    self->state = WEIR_ESTIMATE_CLEAR;
  else if (self->state == WEIR_ESTIMATE_CLEAR && warned.groups >= 2 && warned.span >= 200 * WEIR_MS)
    self->state = WEIR_ESTIMATE_WARNING;
}

void
weir_estimate_judge (WeirEstimate *self, const WeirEstimateGroup *group)
{
  self->reported = false;
  self->groups[self->n_groups++ % WEIR_GROUPS] = *group;
  find_state (self);
}

void
weir_estimate_forget (WeirEstimate *self)
{
  self->open = (WeirEstimateGroup) { 0 };
  self->base = (WeirEstimateBase) { INT64_MAX, INT64_MAX, 0 };
  self->n_groups = self->bound_from = 0;
  self->state = WEIR_ESTIMATE_CLEAR;
  self->reported = false;
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
    bits = bits_of (&sum);
    best = bits > best ? bits : best;
  }
  return best;
}

unsigned
weir_estimate_loss (const WeirEstimate *self)
{
  Sum sum = sum_of (self, 1000 * WEIR_MS);

  return loss_of (&sum);
}
