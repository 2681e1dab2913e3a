// SPDX-License-Identifier: LGPL-2.1-or-later
#include "webrtc/twcc.h"

#include <stdlib.h>

#include "bits/bytes.h"
#include "packets.h"
#include "rtp/feedback.h"
#include "run/clock.h"
#include "tap.h"

#define MS INT64_C (1000000)
#define TICK (MS / 4)
#define ROOM 1188

static WeirTwcc twcc;

static void
take (uint16_t seq, int64_t at_ns)
{
  weir_twcc_take (&twcc, seq, at_ns);
}

// Checks a feedback packet without its header, from the base number on.
static void
check_feedback (const uint8_t *expected, size_t len)
{
  uint8_t out[ROOM];
  const uint8_t head[] = { 0x8f, 205, 0, (uint8_t) ((12 + len) / 4 - 1), 0xde, 0xad, 0xbe, 0xef, 1,
    2, 3, 4 };

  CHECK_INT (weir_twcc_write (&twcc, out, sizeof out, 0xdeadbeef, 0x01020304), 12 + len);
  CHECK (!memcmp (out, head, sizeof head));
  CHECK (!memcmp (out + 12, expected, len));
  CHECK_INT (twcc.due_ns, WEIR_NEVER);
}

// All values below were worked out by hand from the draft.

static void
feedback_matches_the_draft (void)
{
  static const uint8_t expected[] = {
    0xff, 0xfe, 0, 4,       // first number, packets
    0, 0, 2, 0,             // 128 ms, count of feedback packets
    0xd1, 0x80,             // two bits each: small, lost, small, large
    3, 1, 0x01, 0x18, 0, 0, // deltas from 128 ms on, padding
  };

  weir_twcc_init (&twcc);
  take (65534, 128 * MS + 3 * TICK + 1);
  take (0, 129 * MS);
  take (1, 199 * MS);
  CHECK_INT (twcc.due_ns, 128 * MS + 3 * TICK + 1 + WEIR_TWCC_INTERVAL_NS);
  check_feedback (expected, sizeof expected);
}

static void
equal_statuses_are_a_run (void)
{
  static const uint8_t expected[] = {
    0, 5, 0, 20,                                                     // first, packets
    0, 0, 0, 0,                                                      //
    0x20, 20,                                                        // 20 small ones
    4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 0, 0 // 1 ms each
  };

  weir_twcc_init (&twcc);
  for (uint16_t i = 0; i < 20; i++)
    take (5 + i, (i + 1) * MS);
  check_feedback (expected, sizeof expected);
}

static void
small_and_lost_ones_have_one_bit_each (void)
{
  static const uint8_t expected[] = {
    0, 0, 0, 17,            // first number, packets
    0, 0, 1, 0,             // 64 ms
    0xaa, 0x8a,             // 1,0,1,0,1,0, 1,0,0,0,1,0,1,0
    0xa8, 0,                // 1,0,1, and the rest is not told of
    0, 0, 0, 0, 4, 0, 0, 0, // deltas
  };
  static const uint16_t seqs[] = { 0, 2, 4, 6, 10, 12, 14, 16 };

  weir_twcc_init (&twcc);
  for (size_t i = 0; i < 8; i++)
    take (seqs[i], (i < 4 ? 64 : 65) * MS);
  check_feedback (expected, sizeof expected);
}

static void
a_long_gap_is_a_run_of_lost_ones (void)
{
  static const uint8_t expected[] = {
    0, 1, 3, 0x85,    // first number, 901 packets
    0, 0, 1, 0,       //
    0xa0, 0,          // one that came, 13 lost
    0x03, 886 & 0xff, // 886 lost
    0x20, 1,          // one that came
    0, 4,             // deltas
  };

  weir_twcc_init (&twcc);
  take (1, 64 * MS);
  take (901, 65 * MS);
  check_feedback (expected, sizeof expected);
}

static void
packets_that_were_overtaken_have_negative_deltas (void)
{
  static const uint8_t expected[] = {
    0,
    7,
    0,
    3, // first number, packets
    0,
    0,
    1,
    0, // 64 ms
    0xd6,
    0, // small, small, large
    0,
    8, // at 64 and at 66 ms
    0xff,
    0xfc,
    0, // 1 ms before that
    0,
    0,
    0,
  };

  weir_twcc_init (&twcc);
  take (7, 64 * MS);
  take (9, 65 * MS);
  take (8, 66 * MS);
  check_feedback (expected, 16);
}

static void
a_late_packet_is_told_of_with_those_behind_it (void)
{
  static const uint8_t first[] = {
    0, 1, 0, 3, 0, 0, 1, 0, // 1 to 3, 64 ms
    0xa8, 0, 0, 0,          // 2 is lost
  };
  static const uint8_t second[] = {
    0, 2, 0, 2, 0, 0, 1, 1, // 2 and 3, the second packet
    0xd8, 0, 40, 0xff,      // 2 is 10 ms late
    0xd8, 0, 0, 0,          // 3 came before it
  };

  weir_twcc_init (&twcc);
  take (1, 64 * MS);
  take (3, 64 * MS);
  check_feedback (first, sizeof first);
  take (2, 74 * MS);
  take (2, 75 * MS); // a duplicate says nothing
  check_feedback (second, sizeof second);
}

static void
nothing_is_due_without_a_packet (void)
{
  uint8_t out[ROOM];

  weir_twcc_init (&twcc);
  CHECK_INT (twcc.due_ns, WEIR_NEVER);
  CHECK_INT (weir_twcc_write (&twcc, out, sizeof out, 1, 2), 0);
}

static void
many_packets_are_due_at_once (void)
{
  weir_twcc_init (&twcc);
  for (uint16_t i = 0; i < WEIR_TWCC_BATCH - 1; i++)
    take (i, 1000 * MS);
  CHECK_INT (twcc.due_ns, 1064 * MS);
  take (WEIR_TWCC_BATCH, 1001 * MS);
  CHECK_INT (twcc.due_ns, 1001 * MS);
}

// ---- read back ----

typedef struct {
  uint16_t base, n;
  uint32_t reference;
  bool came[65536];
  int64_t tick[65536]; // of those that came
} Told;

static Told told;

// An independent reading of a feedback packet, symbol by symbol (draft, 3.1).
static void
read_back (const uint8_t *data, size_t len)
{
  WeirBytes b = weir_bytes (data, len);
  uint8_t symbols[16384];
  size_t n = 0;
  int64_t tick;
  uint16_t chunk;

  weir_bytes_skip (&b, 12);
  weir_bytes_u16 (&b, &told.base);
  weir_bytes_u16 (&b, &told.n);
  weir_bytes_u24 (&b, &told.reference);
  weir_bytes_skip (&b, 1);
  while (n < told.n && weir_bytes_u16 (&b, &chunk)) {
    if (!(chunk & 0x8000)) {
      for (unsigned i = 0; i < (chunk & 0x1fff); i++)
        symbols[n++] = chunk >> 13;
    } else if (!(chunk & 0x4000)) {
      for (int i = 13; i >= 0; i--)
        symbols[n++] = chunk >> i & 1;
    } else {
      for (int i = 12; i >= 0; i -= 2)
        symbols[n++] = chunk >> i & 3;
    }
  }
  CHECK (n >= told.n && n <= told.n + 13u);
  tick = (int64_t) told.reference * 256;
  for (size_t i = 0; i < told.n; i++) {
    uint16_t seq = (uint16_t) (told.base + i), large;
    uint8_t small;

    told.came[seq] = symbols[i] > 0;
    if (symbols[i] == 1 && weir_bytes_u8 (&b, &small))
      tick += small;
    else if (symbols[i] == 2 && weir_bytes_u16 (&b, &large))
      tick += (int16_t) large;
    CHECK (symbols[i] < 3);
    told.tick[seq] = tick;
  }
  CHECK (!b.failed && weir_bytes_left (&b) < 4);
}

// Writes and reads all feedback that waits. Returns the number of packets.
static size_t
read_all (size_t room)
{
  uint8_t *out = malloc (room); // of this size, for sanitizers
  size_t len, n = 0;

  while ((len = weir_twcc_write (&twcc, out, room, 1, 2)) > 0) {
    CHECK (len <= room && len % 4 == 0);
    read_back (out, len);
    n++;
  }
  free (out);
  CHECK_INT (twcc.due_ns, WEIR_NEVER);
  return n;
}

static void
what_has_no_room_is_told_of_next (void)
{
  uint8_t out[40];
  size_t len;

  weir_twcc_init (&twcc);
  for (uint16_t i = 0; i < 100; i++)
    take (i, i * MS);
  CHECK_INT (weir_twcc_write (&twcc, out, 20, 1, 2), 0); // not even one
  len = weir_twcc_write (&twcc, out, sizeof out, 1, 2);
  CHECK_INT (twcc.due_ns, 64 * MS); // still
  read_back (out, len);
  CHECK (told.n > 10 && told.n < 20);
  memset (&told, 0, sizeof told);
  CHECK (read_all (60) > 1);
  CHECK (told.came[99] && told.tick[99] == 99 * 4);
}

static void
packets_far_apart_in_time_are_told_of_apart (void)
{
  weir_twcc_init (&twcc);
  memset (&told, 0, sizeof told);
  take (1, 0);
  take (2, 8192 * MS); // 32768 units: more than a delta holds
  take (3, 16383 * MS + 3 * TICK);
  CHECK_INT (read_all (ROOM), 2);
  CHECK (told.came[1] && told.came[2] && told.came[3]);
  CHECK_INT (told.tick[2], 32768);
  CHECK_INT (told.tick[3], 65535);
}

static void
times_wrap (void)
{
  const int64_t wrap_ns = (INT64_C (1) << 32) * TICK; // 12 days: the 24 bits of 64 ms are over

  weir_twcc_init (&twcc);
  memset (&told, 0, sizeof told);
  take (1, wrap_ns - MS);
  take (2, wrap_ns + MS);
  CHECK_INT (read_all (ROOM), 1);
  CHECK_INT (told.reference, 0xffffff);
  CHECK_INT (told.tick[1], (INT64_C (1) << 32) - 4);
  CHECK_INT (told.tick[2], (INT64_C (1) << 32) + 4);
}

static void
numbers_far_behind_restart_if_two_are_in_a_row (void)
{
  weir_twcc_init (&twcc);
  memset (&told, 0, sizeof told);
  take (5000, 0);
  take (100, MS); // alone: left out
  take (5001, 2 * MS);
  take (101, 3 * MS); // not in a row, as 5001 came between them
  read_all (ROOM);
  CHECK (told.came[5000] && told.came[5001] && !told.came[100]);
  take (102, 4 * MS);
  take (103, 5 * MS);
  read_all (ROOM);
  CHECK (told.came[102] && told.came[103]);
  CHECK_INT (told.tick[103], 20);
}

static void
a_jump_ahead_leaves_out_what_does_not_fit (void)
{
  weir_twcc_init (&twcc);
  memset (&told, 0, sizeof told);
  take (1, 0);
  take (1 + WEIR_TWCC_RING, MS);
  CHECK_INT (read_all (ROOM), 1);
  CHECK_INT (told.base, 2);
  CHECK_INT (told.n, WEIR_TWCC_RING);
  CHECK (told.came[1 + WEIR_TWCC_RING]);
}

static int64_t came_at[65536]; // ticks; 0: it did not come

// Checks the last 200 numbers.
static void
check_told (void)
{
  for (int back = 0; back < 200; back++) {
    uint16_t seq = (uint16_t) (twcc.newest - back);

    CHECK_INT (told.came[seq], came_at[seq] > 0);
    if (came_at[seq] > 0)
      CHECK_INT (told.tick[seq], came_at[seq]);
  }
}

static void
all_that_came_is_told_with_its_time (void)
{
  int64_t now_ns = 1000 * MS;
  uint16_t next = 65000;

  weir_twcc_init (&twcc);
  memset (&told, 0, sizeof told);
  for (int i = 0; i < 20000; i++) {
    uint16_t seq = next;

    now_ns += (int64_t) random_below (random_percent (2) ? 200 * MS : 2 * MS);
    if (random_percent (5))
      seq = (uint16_t) (next - 1 - random_below (30)); // late, or again
    else
      next = (uint16_t) (next + 1 + (random_percent (1) ? random_below (40) : 0));
    for (int ahead = 0; ahead < 41; ahead++)
      came_at[(uint16_t) (next + ahead)] = 0;
    if (random_percent (10))
      continue; // lost
    if (came_at[seq] == 0)
      came_at[seq] = now_ns / TICK;
    take (seq, now_ns);
    if (twcc.due_ns <= now_ns || random_percent (3)) {
      read_all (random_percent (50) ? ROOM : 120 + random_below (200));
      check_told ();
    }
  }
}

// The reader of feedback is the writer's witness, and the writer the reader's.
static void
what_is_written_is_read (void)
{
  static WeirFeedback feedback;

  srand (1);
  for (int round = 0; round < 300; round++) {
    unsigned gap = 1 + (unsigned) rand () % 8, jitter = 1 + (unsigned) rand () % 400;
    int64_t at[1024], now = (int64_t) rand () * TICK;
    uint16_t first = (uint16_t) rand (), next = first;
    WeirBytes bytes;
    uint8_t out[ROOM];
    size_t size;

    weir_twcc_init (&twcc);
    for (int i = 0; i < 500; i++) {
      now += rand () % (int) jitter * TICK;
      at[i] = i == 0 || rand () % (int) gap == 0 ? now : -1;
      if (at[i] >= 0)
        take ((uint16_t) (first + i), now);
    }
    while ((size = weir_twcc_write (&twcc, out, sizeof out, 1, 2)) > 0) {
      bytes = weir_bytes (out, size);
      CHECK_INT (weir_feedback_next (&bytes, &feedback), 1);
      CHECK_INT (feedback.first, next);
      for (size_t i = 0; i < feedback.n; i++, next++) {
        int64_t arrival = at[(uint16_t) (next - first)];

        CHECK_INT (feedback.arrived[i], arrival >= 0);
        if (arrival >= 0)
          CHECK_INT (feedback.ticks[i], (uint32_t) (arrival / TICK));
      }
    }
    CHECK ((uint16_t) (next - first) > 400);
  }
}

int
main (void)
{
  random_init ();
  RUN (feedback_matches_the_draft);
  RUN (equal_statuses_are_a_run);
  RUN (small_and_lost_ones_have_one_bit_each);
  RUN (a_long_gap_is_a_run_of_lost_ones);
  RUN (packets_that_were_overtaken_have_negative_deltas);
  RUN (a_late_packet_is_told_of_with_those_behind_it);
  RUN (nothing_is_due_without_a_packet);
  RUN (many_packets_are_due_at_once);
  RUN (what_has_no_room_is_told_of_next);
  RUN (packets_far_apart_in_time_are_told_of_apart);
  RUN (times_wrap);
  RUN (numbers_far_behind_restart_if_two_are_in_a_row);
  RUN (a_jump_ahead_leaves_out_what_does_not_fit);
  RUN (all_that_came_is_told_with_its_time);
  RUN (what_is_written_is_read);
  return tap_done ();
}
