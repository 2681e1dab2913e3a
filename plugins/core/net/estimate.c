// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdlib.h>

#include "net/estimate_private.h"
#include "rtp/rtp.h"

#define SECOND INT64_C (1000000) // us
#define NS 1000                  // in a us
#define TICK 250                 // of the reader's clock, us
#define BASE_PERIOD (10 * SECOND)
#define OLD (60 * SECOND) // a packet of this age was sent before a step of our clock
#define CLOCK_SLACK (2 * SECOND)
#define SILENCE SECOND
#define FEEDBACKS_MAX 200 // a second
#define BURST_GAP 10000   // us
#define BURST_LEAST 5     // packets
#define BURST_MOST 20
#define REMB_TIME (5 * SECOND)

// A packet sent, in 64 bits: its departure in us, which wraps; its number; its size, 0 if it was
// told of; and whether it was said to be lost.
#define LOST 0x8000u
#define SIZE_MAX_KEPT 0x7fffu

static uint64_t
pack (uint32_t departure, uint16_t number, uint16_t size)
{
  return (uint64_t) departure << 32 | (uint64_t) number << 16 | size;
}

static uint16_t
number_of (uint64_t entry)
{
  return (uint16_t) (entry >> 16);
}

static uint32_t
size_of (uint64_t entry)
{
  return (uint32_t) entry & SIZE_MAX_KEPT;
}

// Returns how long ago the packet was sent.
static uint32_t
age_of (uint64_t entry, int64_t now)
{
  return (uint32_t) now - (uint32_t) (entry >> 32);
}

WeirEstimate *
weir_estimate_new (size_t ring)
{
  WeirEstimate *self = calloc (1, sizeof *self + ring * sizeof self->sent[0]);

  if (!self)
    return NULL;
  self->ring = ring;
  weir_estimate_forget (self);
  return self;
}

void
weir_estimate_free (WeirEstimate *self)
{
  free (self);
}

void
weir_estimate_sent (WeirEstimate *self, uint16_t number, size_t size, int64_t now)
{
  uint16_t kept = (uint16_t) (size < SIZE_MAX_KEPT ? size : SIZE_MAX_KEPT);

  __atomic_store_n (&self->sent[number & (self->ring - 1)],
      pack ((uint32_t) (now / NS), number, kept), __ATOMIC_RELAXED);
}

// Takes a value at `now`, and returns the least one.
static int64_t
take_base (WeirEstimateBase *base, int64_t value, int64_t now)
{
  if (now - base->since >= BASE_PERIOD || now < base->since) {
    base->before = base->least;
    base->least = INT64_MAX;
    base->since = now;
  }
  if (value < base->least)
    base->least = value;
  return weir_estimate_base (base);
}

// ---- feedback ----

static bool
is_flood (WeirEstimate *self, int64_t now)
{
  if (now - self->flood_since >= SECOND || now < self->flood_since) {
    self->flood_since = now;
    self->flood_n = 0;
  }
  return ++self->flood_n > FEEDBACKS_MAX;
}

static uint32_t
to_u32 (int64_t value)
{
  return value < 0 ? 0 : value > UINT32_MAX ? UINT32_MAX : (uint32_t) value;
}

static void
close_group (WeirEstimate *self, int64_t arrival, int64_t departure, int64_t now)
{
  int64_t base = take_base (&self->base, self->open_least, now);
  int64_t sent = departure - self->open_departure, arrived = arrival - self->open_arrival;

  self->open.arrival = to_u32 (arrived);
  self->open.span = to_u32 (sent > arrived ? sent : arrived);
  self->open.delay = to_u32 (self->open_least - base);
  weir_estimate_judge (self, &self->open);
  self->open = (WeirEstimateGroup) { 0 };
}

// Follows the packets that are sent within BURST_GAP of one another. How they are drawn apart shows
// what the line may carry, long before as much is sent.
static void
take_burst (WeirEstimate *self, uint32_t size, int64_t departure, int64_t arrival)
{
  WeirEstimateBurst *burst = &self->burst;
  int64_t sent, arrived, span;

  if (burst->n == 0 || burst->n == BURST_MOST || departure - burst->last_departure > BURST_GAP
      || departure < burst->last_departure || arrival < burst->last_arrival)
    *burst = (WeirEstimateBurst) { .departure = departure, .arrival = arrival };
  else
    burst->bytes += size;
  burst->n++;
  burst->last_departure = departure;
  burst->last_arrival = arrival;
  if (burst->n < BURST_LEAST)
    return;
  sent = departure - burst->departure;
  arrived = arrival - burst->arrival;
  span = sent > arrived ? sent : arrived;
  if (span > 0 && burst->bytes * INT64_C (8000) / span > self->open.burst)
    self->open.burst = to_u32 (burst->bytes * INT64_C (8000) / span);
}

static void
take_arrival (WeirEstimate *self, uint32_t size, int64_t departure, int64_t arrival, int64_t now)
{
  if (self->open.n > 0 && arrival - self->open_arrival >= WEIR_GROUP_US)
    close_group (self, arrival, departure, now);
  if (self->open.n++ == 0) {
    self->open_arrival = arrival;
    self->open_departure = departure;
    self->open_least = arrival - departure;
  }
  self->open.bytes += size;
  take_burst (self, size, departure, arrival);
  if (arrival - departure < self->open_least)
    self->open_least = arrival - departure;
  if (arrival > self->newest)
    self->newest = arrival;
}

// Returns the packet's entry, or 0 if there is none to tell of.
static uint64_t
take_entry (WeirEstimate *self, uint16_t number, bool arrived)
{
  uint64_t *slot = &self->sent[number & (self->ring - 1)];
  uint64_t entry = __atomic_load_n (slot, __ATOMIC_RELAXED);
  uint64_t then = arrived ? pack (0, number, 0) : entry | LOST;

  if (size_of (entry) == 0 || number_of (entry) != number
      || !__atomic_compare_exchange_n (
          slot, &entry, then, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    return 0;
  return entry;
}

static void
take_packet (WeirEstimate *self, uint16_t number, bool arrived, uint32_t ticks, int64_t now)
{
  uint64_t entry = take_entry (self, number, arrived);

  if (arrived)
    weir_unwrap32 (&self->ticks, ticks);
  if (entry == 0 || age_of (entry, now) > OLD) {
    self->counts.unknown++;
    return;
  }
  if (!arrived) {
    self->open.lost += !(entry & LOST);
    self->counts.lost += !(entry & LOST);
    return;
  }
  if ((int16_t) (uint16_t) (number - self->number) > 0)
    self->number = number;
  self->counts.arrived++;
  if (entry & LOST) {
    self->counts.lost--;
    self->open.lost -= self->open.lost > 0;
  }
  take_arrival (self, size_of (entry), now - age_of (entry, now), self->ticks * TICK, now);
}

static void
begin (WeirEstimate *self, const WeirFeedback *feedback, int64_t now)
{
  weir_estimate_forget (self);
  self->begun = true;
  self->ticks = WEIR_UNWRAP_START;
  self->newest = INT64_MIN;
  self->heard = now;
  self->number = (uint16_t) (feedback->first - 1);
}

// Follows the reader's clock to the last packet that arrived. Begins anew if a clock has stepped.
static void
follow_clock (WeirEstimate *self, const WeirFeedback *feedback, int64_t now)
{
  size_t n = feedback->n;
  int64_t ticks = self->ticks, ahead;

  while (n > 0 && !feedback->arrived[n - 1])
    n--;
  if (!self->begun) {
    begin (self, feedback, now);
  } else if (n > 0 && self->newest != INT64_MIN) {
    ahead = weir_unwrap32 (&ticks, feedback->ticks[n - 1]) * TICK - self->newest;
    ahead -= now - self->heard;
    if (ahead > CLOCK_SLACK || ahead < -CLOCK_SLACK) {
      self->counts.steps++;
      begin (self, feedback, now);
    }
  }
  if (n > 0)
    self->heard = now;
}

void
weir_estimate_feedback (WeirEstimate *self, const WeirFeedback *feedback, int64_t now_ns)
{
  int64_t now = now_ns / NS;

  if (is_flood (self, now)) {
    self->counts.refused++;
    return;
  }
  self->counts.feedbacks++;
  self->counts.unknown += feedback->left_out;
  follow_clock (self, feedback, now);
  for (size_t i = 0; i < feedback->n; i++)
    take_packet (
        self, (uint16_t) (feedback->first + i), feedback->arrived[i], feedback->ticks[i], now);
}

// ---- REMB ----

void
weir_estimate_remb (WeirEstimate *self, uint64_t bits, int64_t now_ns)
{
  self->remb_bits = bits;
  self->remb_until = now_ns / NS + REMB_TIME;
}

// ---- TCP ----

#define OWN_QUEUE (50 * WEIR_MS)

void
weir_estimate_tcp (WeirEstimate *self, const WeirEstimateTcp *span, int64_t now_ns)
{
  int64_t trip = span->round_trip_ns / NS, base = take_base (&self->base, trip, now_ns / NS);
  WeirEstimateGroup group = { .span = to_u32 (span->span_ns / NS),
    .arrival = to_u32 (span->span_ns / NS),
    .bytes = span->bytes < UINT32_MAX ? (uint32_t) span->bytes : UINT32_MAX,
    .delay = to_u32 (span->wait_ns / NS + trip - base) };

  if (span->wait_ns / NS > OWN_QUEUE)
    self->yielded = false;
  weir_estimate_judge (self, &group);
}

// ---- the view ----

// Returns for how long packets have been under way and none has arrived.
static int64_t
silence (const WeirEstimate *self, int64_t now)
{
  uint16_t next = (uint16_t) (self->number + 1);
  int64_t since = now > self->heard ? now - self->heard : 0;
  uint64_t entry;

  if (!self->begun)
    return 0;
  entry = __atomic_load_n (&self->sent[next & (self->ring - 1)], __ATOMIC_RELAXED);
  if (size_of (entry) == 0 || (int16_t) (uint16_t) (number_of (entry) - next) < 0)
    return 0;
  // If the packet is forgotten, at least the last arrival is known.
  return number_of (entry) == next && age_of (entry, now) < since ? age_of (entry, now) : since;
}

static void
lower_by_remb (const WeirEstimate *self, WeirEstimateView *view, int64_t now)
{
  if (now >= self->remb_until || view->bits == 0 || self->remb_bits >= view->bits)
    return;
  view->bits = self->remb_bits;
  view->is_lower_bound = false;
  view->state = WEIR_ESTIMATE_CONGESTED;
}

WeirEstimateView
weir_estimate_view (WeirEstimate *self, int64_t now_ns)
{
  int64_t now = now_ns / NS, silent = silence (self, now);
  uint64_t bound = weir_estimate_bound (self);
  WeirEstimateView view = { .loss = weir_estimate_loss (self),
    .full_bits = weir_estimate_full (self),
    .burst_bits = weir_estimate_burst (self) };

  if (silent >= SILENCE) {
    if (self->state != WEIR_ESTIMATE_CONGESTED)
      self->congested_bits = bound;
    self->state = WEIR_ESTIMATE_CONGESTED;
  }
  view.state = self->state;
  view.is_lower_bound = self->state != WEIR_ESTIMATE_CONGESTED;
  view.bits = view.is_lower_bound ? bound : self->congested_bits;
  // Halved for each second of silence.
  view.bits >>= silent < 32 * SILENCE ? silent / SILENCE : 32;
  if (self->n_groups > 0)
    view.queue_ns = (int64_t) self->groups[(self->n_groups - 1) % WEIR_GROUPS].delay * NS;
  lower_by_remb (self, &view, now);
  return view;
}

WeirEstimateCounts
weir_estimate_counts (const WeirEstimate *self)
{
  return self->counts;
}
