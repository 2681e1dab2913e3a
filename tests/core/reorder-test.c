// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ingest/reorder.h"

#include <stdlib.h>

#include "tap.h"

#define MS INT64_C (1000000)
#define END INT64_MIN

static WeirReorder window;
static int64_t out[1024], missing[1024];
static size_t n_out;

static void
begin (size_t packets, size_t bytes, int64_t time_ns)
{
  const WeirReorderLimits limits = { packets, bytes, time_ns };

  weir_reorder_init (&window, &limits);
  n_out = 0;
}

// Notes a packet and checks that its bytes are those that were put in.
static void
deliver (const WeirIngestPacket *packet)
{
  out[n_out] = packet->seq;
  missing[n_out++] = (int64_t) packet->missing;
  for (size_t i = 0; i < packet->len; i++)
    CHECK_INT (packet->data[i], (uint8_t) (packet->seq + (int64_t) i));
}

static void
pop_all (int64_t now_ns)
{
  WeirIngestPacket packet;

  while (weir_reorder_pop (&window, now_ns, &packet))
    deliver (&packet);
}

static WeirReorderPut
put (int64_t seq, size_t len, int64_t now_ns)
{
  uint8_t data[2000];
  WeirIngestPacket packet = { .data = data, .len = len, .seq = seq, .arrival_ns = now_ns };
  WeirReorderPut result;

  for (size_t i = 0; i < len; i++)
    data[i] = (uint8_t) (seq + (int64_t) i);
  pop_all (now_ns);
  weir_reorder_make_room (&window, seq, len);
  pop_all (now_ns);
  result = weir_reorder_put (&window, &packet);
  if (result == WEIR_REORDER_PASS)
    deliver (&packet);
  pop_all (now_ns);
  memset (data, 0xee, sizeof data); // what is held was copied
  return result;
}

static void
check_out (const int64_t *expected)
{
  size_t n = 0;

  while (expected[n] != END)
    n++;
  CHECK_INT (n_out, n);
  for (size_t i = 0; i < n && i < n_out; i++)
    CHECK_INT (out[i], expected[i]);
}

static void
packets_leave_in_order (void)
{
  static const struct {
    int64_t in[12], out[12]; // all within the time limit; both end with END
    size_t held;
  } cases[] = {
    { { 5, 6, 7, END }, { 5, 6, 7, END }, 0 },
    { { 5, 7, 6, 8, END }, { 5, 6, 7, 8, END }, 0 },
    { { 5, 8, 7, 6, 9, END }, { 5, 6, 7, 8, 9, END }, 0 },
    { { 5, 7, 9, 6, 8, END }, { 5, 6, 7, 8, 9, END }, 0 },
    { { 5, 7, 9, 6, END }, { 5, 6, 7, END }, 1 },
    { { 5, 7, 8, END }, { 5, END }, 2 },
    // One from before the first packet is late, as is one that was delivered.
    { { 5, 4, 5, 6, END }, { 5, 6, END }, 0 },
    { { 5, 7, 7, 6, END }, { 5, 6, 7, END }, 0 },
    { { -3, -1, -2, 0, END }, { -3, -2, -1, 0, END }, 0 },
    { { 65535, 65537, 65536, END }, { 65535, 65536, 65537, END }, 0 },
  };

  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    begin (8, 1 << 20, 20 * MS);
    for (size_t i = 0; cases[c].in[i] != END; i++)
      put (cases[c].in[i], 100, (int64_t) i);
    check_out (cases[c].out);
    CHECK_INT (weir_reorder_clear (&window), cases[c].held);
  }
}

static void
a_put_says_the_packet_s_fate (void)
{
  begin (8, 1 << 20, 20 * MS);
  CHECK_INT (put (5, 10, 0), WEIR_REORDER_PASS);
  CHECK_INT (put (7, 10, 0), WEIR_REORDER_HELD);
  CHECK_INT (put (7, 10, 0), WEIR_REORDER_DUPLICATE);
  CHECK_INT (put (5, 10, 0), WEIR_REORDER_LATE);
  CHECK_INT (put (6, 0, 0), WEIR_REORDER_PASS);
  CHECK_INT (put (7, 10, 0), WEIR_REORDER_LATE);
  CHECK_INT (weir_reorder_clear (&window), 0);
}

static void
a_gap_is_given_up_after_the_time (void)
{
  begin (8, 1 << 20, 20 * MS);
  CHECK_INT (weir_reorder_due (&window), WEIR_NEVER);
  put (5, 10, 0);
  CHECK_INT (weir_reorder_due (&window), WEIR_NEVER);
  put (8, 10, 3 * MS);
  put (9, 10, 5 * MS);
  put (11, 10, 6 * MS);
  CHECK_INT (weir_reorder_due (&window), 23 * MS);
  pop_all (23 * MS - 1);
  check_out ((const int64_t[]) { 5, END });
  pop_all (23 * MS);
  check_out ((const int64_t[]) { 5, 8, 9, END });
  CHECK_INT (missing[1], 2);
  CHECK_INT (missing[2], 0);
  CHECK_INT (weir_reorder_due (&window), 26 * MS);
  CHECK_INT (put (7, 10, 24 * MS), WEIR_REORDER_LATE);
  pop_all (26 * MS);
  CHECK_INT (missing[3], 1);
  CHECK_INT (weir_reorder_due (&window), WEIR_NEVER);
  CHECK_INT (weir_reorder_clear (&window), 0);
}

static void
a_packet_ahead_of_the_window_gives_gaps_up (void)
{
  begin (4, 1 << 20, 20 * MS);
  put (10, 10, 0);
  put (12, 10, 0);
  put (14, 10, 0);
  check_out ((const int64_t[]) { 10, END });
  put (15, 10, 0); // the window is from 12 on: 11 is given up, 12 leaves
  check_out ((const int64_t[]) { 10, 12, END });
  CHECK_INT (missing[1], 1);
  put (100, 10, 0); // all that is held leaves; 97 to 99 may still come
  check_out ((const int64_t[]) { 10, 12, 14, 15, END });
  CHECK_INT (missing[2], 1);
  CHECK_INT (put (96, 10, 0), WEIR_REORDER_LATE);
  CHECK_INT (put (97, 10, 0), WEIR_REORDER_PASS);
  CHECK_INT (missing[4], 97 - 16);
  pop_all (20 * MS);
  check_out ((const int64_t[]) { 10, 12, 14, 15, 97, 100, END });
  CHECK_INT (missing[5], 2);
  CHECK_INT (weir_reorder_clear (&window), 0);
}

static void
a_window_of_one_packet_never_holds (void)
{
  begin (1, 1 << 20, 20 * MS);
  put (1, 10, 0);
  put (4, 10, 0);
  put (3, 10, 0);
  check_out ((const int64_t[]) { 1, 4, END });
  CHECK_INT (missing[1], 2);
  CHECK_INT (weir_reorder_clear (&window), 0);
}

static void
bytes_held_are_bounded (void)
{
  begin (64, 3000, 20 * MS);
  put (0, 1000, 0);
  for (int64_t seq = 2; seq < 30; seq++) {
    put (seq, 1000, 0);
    CHECK (window.bytes_held <= 3000);
  }
  // 2, 3 and 4 were held; the next packet gave up 1, and the rest was in order.
  CHECK_INT (n_out, 29);
  CHECK_INT (missing[1], 1);
  CHECK_INT (weir_reorder_clear (&window), 0);
}

static int64_t last_out, sum_missing;

// Checks that the packets delivered so far follow the ones before, and forgets them.
static size_t
check_follow (void)
{
  size_t n = n_out;

  for (size_t i = 0; i < n; i++) {
    CHECK (out[i] > last_out);
    if (last_out >= 0)
      CHECK_INT (out[i] - last_out - 1, missing[i]);
    last_out = out[i];
    sum_missing += missing[i];
  }
  n_out = 0;
  return n;
}

// Half a million packets, shuffled within 8, of which every 50th is lost: all others leave once, in
// order, and the gaps add up.
static void
sums_are_exact_for_a_shuffled_stream (void)
{
  size_t n = 0;

  begin (64, 1 << 20, 20 * MS);
  last_out = -1;
  srand (1);
  for (int64_t base = 0; base < 500000; base += 8) {
    int64_t order[8];

    for (int i = 0; i < 8; i++) {
      int k = rand () % (i + 1);

      order[i] = order[k];
      order[k] = base + i;
    }
    for (int i = 0; i < 8; i++) {
      if (order[i] % 50 != 7)
        put (order[i], 4, base * MS / 10);
    }
    n += check_follow ();
  }
  pop_all (INT64_MAX);
  n += check_follow ();
  // The first packet may come behind others of its eight; those are late.
  CHECK (n <= 490000 && n >= 490000 - 8);
  CHECK_INT (sum_missing, 10000);
  CHECK_INT (weir_reorder_clear (&window), 0);
}

int
main (void)
{
  RUN (packets_leave_in_order);
  RUN (a_put_says_the_packet_s_fate);
  RUN (a_gap_is_given_up_after_the_time);
  RUN (a_packet_ahead_of_the_window_gives_gaps_up);
  RUN (a_window_of_one_packet_never_holds);
  RUN (bytes_held_are_bounded);
  RUN (sums_are_exact_for_a_shuffled_stream);
  return tap_done ();
}
