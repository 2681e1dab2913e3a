// SPDX-License-Identifier: LGPL-2.1-or-later
#include "webrtc/nacks.h"

#include "rtp/rtcp_read.h"
#include "run/clock.h"
#include "tap.h"

#define MS INT64_C (1000000)
#define ROOM 1188

static WeirNacks nacks;

// Asks for what is due. Returns how many numbers, of which `seqs` gets those that it has room for.
static size_t
ask (size_t room, int64_t now_ns, uint16_t *seqs, size_t max)
{
  uint8_t out[ROOM];
  uint64_t asked = 0;
  size_t len = weir_nacks_write (&nacks, out, room, 1, 2, now_ns, &asked);

  CHECK (len <= room);
  CHECK_INT (
      len > 0 ? weir_rtcp_read_nacks (out, len, 2, seqs, max) : 0, asked < max ? asked : max);
  return (size_t) asked;
}

static size_t
asked_at (int64_t now_ns)
{
  uint16_t seqs[WEIR_NACKS_MAX];

  return ask (ROOM, now_ns, seqs, WEIR_NACKS_MAX);
}

static void
a_packet_is_asked_for_a_limited_number_of_times (void)
{
  int64_t now_ns = 0;
  unsigned n = 0;

  weir_nacks_init (&nacks, 100000 * MS, true);
  CHECK_INT (weir_nacks_miss (&nacks, 7, 1, 0), 0);
  while (nacks.due_ns != WEIR_NEVER) {
    now_ns = nacks.due_ns;
    CHECK_INT (weir_nacks_expire (&nacks, now_ns), n == WEIR_NACKS_TRIES);
    n += (unsigned) asked_at (now_ns);
  }
  CHECK_INT (n, WEIR_NACKS_TRIES);
  CHECK_INT (now_ns, (5 + 125 * WEIR_NACKS_TRIES) * MS);
  CHECK (!weir_nacks_take (&nacks, 7, now_ns));
}

static void
a_packet_is_given_up_after_the_window (void)
{
  weir_nacks_init (&nacks, 60 * MS, true);
  weir_nacks_miss (&nacks, 7, 2, 10 * MS);
  CHECK_INT (asked_at (15 * MS), 2);
  CHECK_INT (nacks.due_ns, 70 * MS); // before a round trip
  CHECK_INT (weir_nacks_expire (&nacks, 70 * MS - 1), 0);
  CHECK_INT (weir_nacks_expire (&nacks, 70 * MS), 2);
  CHECK_INT (nacks.due_ns, WEIR_NEVER);
  weir_nacks_init (&nacks, 0, true);
  weir_nacks_miss (&nacks, 7, 1, 10 * MS);
  CHECK_INT (weir_nacks_expire (&nacks, 10 * MS), 1);
}

static void
without_requests_packets_are_only_given_up (void)
{
  weir_nacks_init (&nacks, 60 * MS, false);
  weir_nacks_miss (&nacks, 7, 2, 10 * MS);
  CHECK_INT (nacks.due_ns, 70 * MS);
  CHECK (weir_nacks_take (&nacks, 8, 20 * MS));
  CHECK_INT (weir_nacks_expire (&nacks, 70 * MS), 1);
}

static void
the_oldest_make_room (void)
{
  weir_nacks_init (&nacks, 1000 * MS, true);
  CHECK_INT (weir_nacks_miss (&nacks, 0, WEIR_NACKS_MAX, 0), 0);
  CHECK_INT (weir_nacks_miss (&nacks, 1000, 10, 0), 10);
  CHECK (!weir_nacks_take (&nacks, 9, 0));
  CHECK (weir_nacks_take (&nacks, 10, 0));
  CHECK (weir_nacks_take (&nacks, 1009, 0));
  CHECK_INT (nacks.n, WEIR_NACKS_MAX - 2);
  // A gap that is too long drives all out, also its own beginning.
  CHECK_INT (weir_nacks_miss (&nacks, 2000, 30000, 0), WEIR_NACKS_MAX - 2 + 30000 - WEIR_NACKS_MAX);
  CHECK_INT (nacks.n, WEIR_NACKS_MAX);
  CHECK (weir_nacks_take (&nacks, 31999, 0) && weir_nacks_take (&nacks, 32000 - WEIR_NACKS_MAX, 0));
  CHECK_INT (weir_nacks_clear (&nacks), WEIR_NACKS_MAX - 2);
  CHECK_INT (nacks.due_ns, WEIR_NEVER);
}

static void
what_has_no_room_stays_due (void)
{
  uint16_t seqs[40];

  weir_nacks_init (&nacks, 1000 * MS, true);
  weir_nacks_miss (&nacks, 65530, 40, 0);
  CHECK_INT (ask (20, 5 * MS, seqs, 40), 34); // two entries of 17
  CHECK_INT (nacks.due_ns, 5 * MS);
  CHECK (seqs[0] == 65530 && seqs[33] == (uint16_t) (65530 + 33));
  CHECK_INT (ask (15, 5 * MS, seqs, 40), 0);
  CHECK_INT (ask (16, 5 * MS, seqs, 40), 6);
  CHECK_INT (seqs[0], (uint16_t) (65530 + 34));
  CHECK_INT (nacks.due_ns, 130 * MS);
}

static void
the_round_trip_is_learned (void)
{
  weir_nacks_init (&nacks, 10000 * MS, true);
  weir_nacks_miss (&nacks, 1, 4, 0);
  CHECK (weir_nacks_take (&nacks, 1, MS)); // overtaken, not asked for
  CHECK_INT (nacks.round_trip_ns, 0);
  asked_at (5 * MS);
  weir_nacks_take (&nacks, 2, 21 * MS);
  CHECK_INT (nacks.round_trip_ns, 16 * MS);
  weir_nacks_take (&nacks, 3, 29 * MS);
  CHECK_INT (nacks.round_trip_ns, 17 * MS); // an eighth of the way
  CHECK_INT (asked_at (130 * MS), 1);
  CHECK_INT (nacks.due_ns, 130 * MS + 17 * MS * 5 / 4);
  weir_nacks_take (&nacks, 4, 149 * MS); // the first request may have been lost
  CHECK_INT (nacks.round_trip_ns, 17 * MS + (144 - 17) * MS / 8);
  weir_nacks_init (&nacks, 10000 * MS, true);
  weir_nacks_miss (&nacks, 1, 3, 0);
  asked_at (5 * MS);
  CHECK (weir_nacks_take (&nacks, 3, 4 * MS)); // it waited in a buffer meanwhile
  CHECK_INT (nacks.round_trip_ns, 0);
  weir_nacks_take (&nacks, 1, 6 * MS);
  asked_at (130 * MS);
  CHECK_INT (nacks.due_ns, 150 * MS); // at least 20 ms between requests
}

int
main (void)
{
  RUN (a_packet_is_asked_for_a_limited_number_of_times);
  RUN (a_packet_is_given_up_after_the_window);
  RUN (without_requests_packets_are_only_given_up);
  RUN (the_oldest_make_room);
  RUN (what_has_no_room_stays_due);
  RUN (the_round_trip_is_learned);
  return tap_done ();
}
