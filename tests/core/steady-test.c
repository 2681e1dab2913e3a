// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/steady.h"

#include "tap.h"

#define MS INT64_C (1000000)
#define S (1000 * MS)
#define FRAME 3600 // ticks of 40 ms
#define HOUR (3600 * 90000)

static WeirSteady steady;
static unsigned n_moved;

static uint32_t
stamp (uint32_t timestamp, bool begins, int64_t now)
{
  WeirRtp rtp = { .timestamp = timestamp };
  bool moved = false;

  weir_steady_take_timestamp (&steady, &rtp, begins, now, &moved);
  weir_steady_take_seq (&steady, &rtp, begins);
  n_moved += moved;
  return rtp.timestamp;
}

static void
reset (void)
{
  weir_steady_init (&steady, 90000);
  n_moved = 0;
}

// Two packets a frame, 40 ms apart, with up to 12 ms of jitter, from a timestamp that wraps soon.
// `odd` moves the timestamp of each 50th frame.
static void
single (int64_t odd)
{
  const uint32_t start = UINT32_MAX - 20 * FRAME;

  reset ();
  for (int64_t frame = 0; frame < 3000; frame++) {
    int64_t now = frame * 40 * MS + frame % 7 * 2 * MS;
    uint32_t timestamp = start + (uint32_t) (frame * FRAME);
    bool is_odd = frame % 50 == 30;

    for (int packet = 0; packet < 2; packet++)
      CHECK_INT (stamp (timestamp + (uint32_t) (is_odd ? odd : 0), false, now), timestamp);
  }
  CHECK_INT (n_moved, 60);
}

static void
a_single_odd_timestamp_is_moved_next_to_its_neighbours (void)
{
  single (-INT64_C (9800) * 90000);
  single (INT64_C (37600) * 90000);
  single (11 * 90000);
  single (-11 * 90000);
  single (INT64_C (1) << 31);
}

static void
two_odd_timestamps_in_a_row_are_where_the_stream_goes_on (void)
{
  static const int64_t jumps[] = { HOUR, -HOUR, 12 * 90000, -12 * 90000, INT64_C (1) << 31 };

  for (size_t i = 0; i < sizeof jumps / sizeof *jumps; i++) {
    reset ();
    for (int64_t frame = 0; frame < 1000; frame++) {
      int64_t jumped = frame / 100 * jumps[i]; // again each 4 s

      CHECK_INT (
          stamp ((uint32_t) (frame * FRAME + jumped), false, frame * 40 * MS), frame * FRAME);
    }
    CHECK_INT (n_moved, 9);
  }
}

static void
every_timestamp_may_be_odd (void)
{
  uint32_t last = 0;

  reset ();
  CHECK_INT (stamp (0, false, 0), 0);
  for (int64_t frame = 1; frame < 500; frame++) {
    uint32_t out = stamp ((uint32_t) (frame * frame * HOUR), false, frame * 40 * MS);

    CHECK (out - last == 1800 || out - last == FRAME);
    last = out;
  }
}

// A stream that stands still, in pauses or for slow frames, is not odd.
static void
pauses_leave_timestamps_alone (void)
{
  static const int64_t gaps_s[] = { 1, 5, 70, 600, 3500 };
  int64_t now = 0;

  reset ();
  for (size_t i = 0; i < 50; i++) {
    CHECK_INT (stamp ((uint32_t) (now / MS * 90), false, now), (uint32_t) (now / MS * 90));
    now += gaps_s[i / 10] * S;
  }
  CHECK_INT (n_moved, 0);
}

// A connection that stalls for 30 s first delivers what waited, then what is new.
static void
a_stall_leaves_timestamps_alone (void)
{
  reset ();
  for (int64_t frame = 0; frame < 100; frame++)
    CHECK_INT (stamp ((uint32_t) (frame * FRAME), false, frame * 40 * MS), frame * FRAME);
  for (int64_t frame = 100; frame < 150; frame++)
    CHECK_INT (stamp ((uint32_t) (frame * FRAME), false, 34 * S), frame * FRAME);
  for (int64_t frame = 850; frame < 900; frame++)
    CHECK_INT (stamp ((uint32_t) (frame * FRAME), false, frame * 40 * MS), frame * FRAME);
  CHECK_INT (n_moved, 0);
}

static void
frames_out_of_order_and_small_jumps_pass (void)
{
  static const int64_t frames[] = { 0, 4, 2, 1, 3, 8, 6, 5, 7, 50, 40, 41, 42, 100, 101 };

  reset ();
  for (size_t i = 0; i < sizeof frames / sizeof *frames; i++)
    CHECK_INT (stamp ((uint32_t) (frames[i] * FRAME), false, 0), frames[i] * FRAME);
  CHECK_INT (n_moved, 0);
}

static void
take (uint16_t seq, uint32_t timestamp, uint32_t ssrc, bool begins, int64_t now, uint16_t out_seq,
    uint32_t out_timestamp)
{
  WeirRtp rtp = { .seq = seq, .timestamp = timestamp, .ssrc = ssrc };
  bool moved = false;

  weir_steady_take_timestamp (&steady, &rtp, begins, now, &moved);
  weir_steady_take_seq (&steady, &rtp, begins);
  CHECK_INT (rtp.seq, out_seq);
  CHECK_INT (rtp.timestamp, out_timestamp);
  CHECK_INT (rtp.ssrc, 1);
}

static void
a_sender_that_begins_anew_continues_the_stream (void)
{
  reset ();
  take (65534, 1000, 1, false, 0, 65534, 1000);
  take (65535, 4600, 1, false, 40 * MS, 65535, 4600);
  take (0, 8200, 2, false, 80 * MS, 0, 8200);            // its numbers go on
  take (3, 11800, 3, false, 120 * MS, 3, 11800);         // so do these, and two were lost
  take (900, 11800 + HOUR, 4, true, 160 * MS, 4, 15400); // they do not
  take (901, 15400 + HOUR, 4, false, 200 * MS, 5, 19000);
  take (899, 15400 + HOUR, 4, false, 200 * MS, 3, 19000); // out of order
  take (901, 19000 + HOUR, 4, true, 240 * MS, 6, 22600);  // the number stands still
  take (901, 22600 + HOUR, 4, true, 280 * MS, 7, 26200);
  take (7, 5, 5, true, 2280 * MS, 8, 26200 + 180000); // after a pause
  CHECK_INT (weir_steady_timestamp (&steady, 5), 26200 + 180000);
}

int
main (void)
{
  RUN (a_single_odd_timestamp_is_moved_next_to_its_neighbours);
  RUN (two_odd_timestamps_in_a_row_are_where_the_stream_goes_on);
  RUN (every_timestamp_may_be_odd);
  RUN (pauses_leave_timestamps_alone);
  RUN (a_stall_leaves_timestamps_alone);
  RUN (frames_out_of_order_and_small_jumps_pass);
  RUN (a_sender_that_begins_anew_continues_the_stream);
  return tap_done ();
}
