// SPDX-License-Identifier: LGPL-2.1-or-later
#include "webrtc/twcc.h"

#include <string.h>

#include "rtp/rtcp_header.h"
#include "rtp/rtp.h"
#include "run/clock.h"

#define TICK_NS 250000
#define TICKS_PER_REFERENCE 256 // 64 ms
#define FMT 15
#define HEADER 20
#define MAX_RUN 8191 // the most that a run-length chunk tells
#define BITS 14      // statuses in a chunk of one bit each
#define PAIRS 7      // statuses in a chunk of two bits each

typedef enum { LOST, SMALL, LARGE } Status;

void
weir_twcc_init (WeirTwcc *self)
{
  *self = (WeirTwcc) { .newest = WEIR_UNWRAP_START, .due_ns = WEIR_NEVER, .probe = -1 };
}

static uint64_t
bit_of (int64_t seq)
{
  return UINT64_C (1) << (seq & 63);
}

static uint64_t *
word_of (WeirTwcc *self, int64_t seq)
{
  return &self->seen[(uint64_t) seq % WEIR_TWCC_RING / 64];
}

static uint32_t
ticks_at (const WeirTwcc *self, int64_t seq)
{
  return self->ticks[(uint64_t) seq % WEIR_TWCC_RING];
}

static void
begin (WeirTwcc *self, int64_t seq)
{
  memset (self->seen, 0, sizeof self->seen);
  self->newest = self->next = seq;
  self->probe = -1;
}

static void
advance (WeirTwcc *self, int64_t seq)
{
  if (seq - self->newest >= WEIR_TWCC_RING) {
    memset (self->seen, 0, sizeof self->seen);
  } else {
    for (int64_t i = self->newest + 1; i <= seq; i++)
      *word_of (self, i) &= ~bit_of (i);
  }
  self->newest = seq;
  self->probe = -1;
  if (self->next <= seq - WEIR_TWCC_RING)
    self->next = seq - WEIR_TWCC_RING + 1;
}

// Finds the place of a number, which may begin anew. Returns false if it is left out.
static bool
place (WeirTwcc *self, uint16_t number, int64_t *seq)
{
  int64_t nearest = self->newest;
  bool confirms = self->probe == number;

  *seq = weir_unwrap16 (&nearest, number);
  if (self->newest == WEIR_UNWRAP_START) {
    begin (self, *seq);
  } else if (*seq > self->newest) {
    advance (self, *seq);
  } else if (*seq <= self->newest - WEIR_TWCC_RING) {
    self->probe = (uint16_t) (number + 1);
    if (!confirms)
      return false;
    begin (self, *seq);
  } else if (*word_of (self, *seq) & bit_of (*seq)) {
    return false;
  }
  return true;
}

void
weir_twcc_take (WeirTwcc *self, uint16_t number, int64_t now_ns)
{
  int64_t seq;

  if (!place (self, number, &seq))
    return;
  *word_of (self, seq) |= bit_of (seq);
  self->ticks[(uint64_t) seq % WEIR_TWCC_RING] = (uint32_t) ((uint64_t) now_ns / TICK_NS);
  if (seq < self->next)
    self->next = seq;
  if (self->waiting++ == 0)
    self->due_ns = now_ns + WEIR_TWCC_INTERVAL_NS;
  if (self->waiting >= WEIR_TWCC_BATCH)
    self->due_ns = now_ns;
}

// ---- writing ----

static void
put (uint8_t *at, uint32_t value, int size)
{
  while (size-- > 0) {
    at[size] = (uint8_t) value;
    value >>= 8;
  }
}

// What a feedback packet tells.
typedef struct {
  uint32_t reference; // ticks
  size_t n;           // statuses; the last one is of a packet that arrived
  size_t delta_bytes;
  uint8_t statuses[WEIR_TWCC_RING];
  int16_t deltas[WEIR_TWCC_RING]; // ticks, of those that arrived
} Told;

// Chunks for `n` statuses take at most this: only the last one tells fewer than PAIRS.
static size_t
chunk_bytes (size_t n)
{
  return 2 * ((n + PAIRS - 1) / PAIRS);
}

static size_t
padded (size_t size)
{
  return (size + 3) / 4 * 4;
}

// Collects what has room.
static void
collect (WeirTwcc *self, size_t room, Told *told)
{
  uint32_t last = 0;
  size_t n = 0, delta_bytes = 0;

  *told = (Told) { 0 };
  for (int64_t seq = self->next; seq <= self->newest; seq++, n++) {
    int32_t delta;

    told->statuses[n] = LOST;
    if (!(*word_of (self, seq) & bit_of (seq)))
      continue;
    if (told->n == 0)
      told->reference = last = ticks_at (self, seq) / TICKS_PER_REFERENCE * TICKS_PER_REFERENCE;
    delta = (int32_t) (ticks_at (self, seq) - last);
    told->statuses[n] = delta >= 0 && delta <= UINT8_MAX ? SMALL : LARGE;
    delta_bytes += told->statuses[n];
    if (delta < INT16_MIN || delta > INT16_MAX
        || padded (HEADER + chunk_bytes (n + 1) + delta_bytes) > room)
      return;
    told->deltas[n] = (int16_t) delta;
    told->n = n + 1;
    told->delta_bytes = delta_bytes;
    last = ticks_at (self, seq);
  }
}

static size_t
run_length (const uint8_t *statuses, size_t n)
{
  size_t run = 1;

  while (run < n && run < MAX_RUN && statuses[run] == statuses[0])
    run++;
  return run;
}

static bool
has_large (const uint8_t *statuses, size_t n)
{
  return memchr (statuses, LARGE, n) != NULL;
}

// Writes a chunk for the first of `n` statuses (draft, 3.1.3 and 3.1.4). Returns how many it tells.
static size_t
put_chunk (uint8_t *at, const uint8_t *statuses, size_t n)
{
  size_t run = run_length (statuses, n), bits = n < BITS ? n : BITS, pairs = n < PAIRS ? n : PAIRS;
  uint32_t chunk;

  if (run == n || run >= BITS || (run >= PAIRS && has_large (statuses, bits))) {
    put (at, (uint32_t) statuses[0] << 13 | (uint32_t) run, 2);
    return run;
  }
  if (!has_large (statuses, bits)) {
    chunk = 0x8000;
    for (size_t i = 0; i < bits; i++)
      chunk |= (uint32_t) statuses[i] << (BITS - 1 - i);
    put (at, chunk, 2);
    return bits;
  }
  chunk = 0xc000;
  for (size_t i = 0; i < pairs; i++)
    chunk |= (uint32_t) statuses[i] << 2 * (PAIRS - 1 - i);
  put (at, chunk, 2);
  return pairs;
}

static uint8_t *
put_chunks (uint8_t *at, const Told *told)
{
  for (size_t i = 0; i < told->n; at += 2)
    i += put_chunk (at, told->statuses + i, told->n - i);
  return at;
}

static uint8_t *
put_deltas (uint8_t *at, const Told *told)
{
  for (size_t i = 0; i < told->n; i++) {
    put (at, (uint16_t) told->deltas[i], told->statuses[i]);
    at += told->statuses[i];
  }
  return at;
}

// Notes that the packets before `end` are told of.
static void
note_told (WeirTwcc *self, int64_t end)
{
  self->next = end;
  if (end <= self->newest)
    return;
  self->waiting = 0;
  self->due_ns = WEIR_NEVER;
}

size_t
weir_twcc_write (WeirTwcc *self, uint8_t *out, size_t room, uint32_t ssrc, uint32_t media)
{
  Told told;
  uint8_t *end;
  size_t size;

  if (self->waiting == 0)
    return 0;
  collect (self, room, &told);
  if (told.n == 0)
    return 0;
  end = put_deltas (put_chunks (out + HEADER, &told), &told);
  size = padded ((size_t) (end - out));
  memset (end, 0, size - (size_t) (end - out));
  out[0] = 0x80 | FMT;
  out[1] = WEIR_RTCP_RTPFB;
  put (out + 2, (uint32_t) (size / 4 - 1), 2);
  put (out + 4, ssrc, 4);
  put (out + 8, media, 4);
  put (out + 12, (uint16_t) self->next, 2);
  put (out + 14, (uint32_t) told.n, 2);
  put (out + 16, told.reference / TICKS_PER_REFERENCE, 3);
  out[19] = self->count++;
  note_told (self, self->next + (int64_t) told.n);
  return size;
}
