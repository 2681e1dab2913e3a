// SPDX-License-Identifier: LGPL-2.1-or-later
#include "webrtc/nacks.h"

#include <string.h>

#include "rtp/rtcp_write.h"
#include "run/clock.h"

#define MS INT64_C (1000000)
#define REORDER_NS (5 * MS)
#define FIRST_ROUND_TRIP_NS (100 * MS) // until one is known
#define SHORTEST_NS (20 * MS)          // between two requests
#define SMOOTHING 8

void
weir_nacks_init (WeirNacks *self, int64_t window_ns, bool asks)
{
  *self = (WeirNacks) { .window_ns = window_ns, .asks = asks, .due_ns = WEIR_NEVER };
}

static void
find_due (WeirNacks *self)
{
  self->due_ns = WEIR_NEVER;
  for (size_t i = 0; i < self->n; i++) {
    if (self->missing[i].due_ns < self->due_ns)
      self->due_ns = self->missing[i].due_ns;
  }
}

static void
remove_at (WeirNacks *self, size_t first, size_t n)
{
  self->n -= n;
  memmove (
      self->missing + first, self->missing + first + n, (self->n - first) * sizeof *self->missing);
}

static int64_t
earlier (int64_t a, int64_t b)
{
  return a < b ? a : b;
}

uint64_t
weir_nacks_miss (WeirNacks *self, int64_t first, uint64_t n, int64_t now_ns)
{
  int64_t wait_ns = self->asks ? earlier (REORDER_NS, self->window_ns) : self->window_ns;
  int64_t due_ns = now_ns + wait_ns;
  uint64_t given_up = 0;

  if (n > WEIR_NACKS_MAX) {
    given_up = n - WEIR_NACKS_MAX;
    first += (int64_t) given_up;
    n = WEIR_NACKS_MAX;
  }
  if (self->n + n > WEIR_NACKS_MAX) {
    size_t leaving = self->n + (size_t) n - WEIR_NACKS_MAX;

    given_up += leaving;
    remove_at (self, 0, leaving);
  }
  for (uint64_t i = 0; i < n; i++) {
    self->missing[self->n++] =
        (WeirNack) { .seq = first + (int64_t) i, .lost_ns = now_ns, .due_ns = due_ns };
  }
  if (n > 0 && due_ns < self->due_ns)
    self->due_ns = due_ns;
  return given_up;
}

// Returns the index of a number, or of the first one above it.
static size_t
find (const WeirNacks *self, int64_t seq)
{
  size_t from = 0, to = self->n;

  while (from < to) {
    size_t middle = from + (to - from) / 2;

    if (self->missing[middle].seq < seq)
      from = middle + 1;
    else
      to = middle;
  }
  return from;
}

// A packet that was asked for more often says nothing: which request it answers is not known. After
// two requests it counts, or a round trip above the first guess would never be learned.
static void
measure (WeirNacks *self, const WeirNack *nack, int64_t now_ns)
{
  int64_t sample_ns = now_ns - nack->asked_ns;

  if (nack->tries == 0 || nack->tries > 2 || sample_ns <= 0) // it had arrived before the request
    return;
  if (self->round_trip_ns == 0)
    self->round_trip_ns = sample_ns;
  else
    self->round_trip_ns += (sample_ns - self->round_trip_ns) / SMOOTHING;
}

bool
weir_nacks_take (WeirNacks *self, int64_t seq, int64_t now_ns)
{
  size_t i = find (self, seq);

  if (i == self->n || self->missing[i].seq != seq)
    return false;
  measure (self, &self->missing[i], now_ns);
  remove_at (self, i, 1);
  if (self->n == 0)
    self->due_ns = WEIR_NEVER;
  return true;
}

uint64_t
weir_nacks_clear (WeirNacks *self)
{
  uint64_t n = self->n;

  self->n = 0;
  self->due_ns = WEIR_NEVER;
  return n;
}

static bool
is_over (const WeirNacks *self, const WeirNack *nack, int64_t now_ns)
{
  return now_ns - nack->lost_ns >= self->window_ns
         || (nack->tries == WEIR_NACKS_TRIES && now_ns >= nack->due_ns);
}

uint64_t
weir_nacks_expire (WeirNacks *self, int64_t now_ns)
{
  size_t n = self->n, kept = 0;

  if (now_ns < self->due_ns)
    return 0;
  for (size_t i = 0; i < n; i++) {
    if (!is_over (self, &self->missing[i], now_ns))
      self->missing[kept++] = self->missing[i];
  }
  self->n = kept;
  find_due (self);
  return n - kept;
}

static void
note_asked (WeirNacks *self, WeirNack *nack, int64_t now_ns)
{
  int64_t round_trip_ns = self->round_trip_ns > 0 ? self->round_trip_ns : FIRST_ROUND_TRIP_NS;
  int64_t wait_ns = round_trip_ns + round_trip_ns / 4;

  if (nack->tries++ == 0)
    nack->asked_ns = now_ns;
  if (wait_ns < SHORTEST_NS)
    wait_ns = SHORTEST_NS;
  nack->due_ns = earlier (now_ns + wait_ns, nack->lost_ns + self->window_ns);
}

size_t
weir_nacks_write (WeirNacks *self, uint8_t *out, size_t room, uint32_t ssrc, uint32_t media,
    int64_t now_ns, uint64_t *asked)
{
  uint16_t seqs[WEIR_NACKS_MAX];
  size_t n = 0, len;

  if (now_ns < self->due_ns)
    return 0;
  for (size_t i = 0; i < self->n; i++) {
    if (now_ns >= self->missing[i].due_ns)
      seqs[n++] = (uint16_t) self->missing[i].seq;
  }
  len = weir_rtcp_write_nack (out, room, ssrc, media, seqs, &n);
  *asked += n;
  for (size_t i = 0; i < self->n && n > 0; i++) {
    if (now_ns >= self->missing[i].due_ns) {
      note_asked (self, &self->missing[i], now_ns);
      n--;
    }
  }
  find_due (self);
  return len;
}
