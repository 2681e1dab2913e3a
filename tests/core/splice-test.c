// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/splice.h"

#include <stdlib.h>
#include <errno.h>

#include "tap.h"

#define SECOND INT64_C (1000000000)
#define MS (SECOND / 1000)

// Maps a packet and checks the result.
static void
check_map (
    WeirSplice *splice, int64_t seq, int64_t timestamp, int64_t out_seq, int64_t out_timestamp)
{
  uint16_t got_seq = 0;
  uint32_t got_timestamp = 0;

  CHECK_INT (
      weir_splice_map (splice, (uint16_t) seq, (uint32_t) timestamp, &got_seq, &got_timestamp), 0);
  CHECK_INT (got_seq, (uint16_t) out_seq);
  CHECK_INT (got_timestamp, (uint32_t) out_timestamp);
}

static void
check_stale (WeirSplice *splice, uint16_t seq, uint32_t timestamp)
{
  uint16_t out_seq = 7;
  uint32_t out_timestamp = 8;

  CHECK_INT (weir_splice_map (splice, seq, timestamp, &out_seq, &out_timestamp), -ESTALE);
  CHECK_INT (out_seq, 7);
  CHECK_INT (out_timestamp, 8);
}

static void
packets_before_the_first_run_are_refused (void)
{
  WeirSplice splice;
  uint16_t seq;
  uint32_t timestamp;

  weir_splice_init (&splice, 90000);
  CHECK_INT (weir_splice_map (&splice, 1, 1, &seq, &timestamp), -EINVAL);
  CHECK_INT (weir_splice_end (&splice), 0);
}

static void
the_first_run_passes_unchanged (void)
{
  static const struct {
    uint32_t base;
    uint16_t seq;
  } starts[] = { { 0, 0 }, { 1, 65535 }, { UINT32_MAX, 65534 }, { 0x80000000, 0x8000 } };

  for (size_t s = 0; s < sizeof starts / sizeof *starts; s++) {
    WeirSplice splice;

    weir_splice_init (&splice, 90000);
    weir_splice_begin (&splice, starts[s].base, 0);
    for (int64_t i = 0; i < 200000; i++) {
      int64_t seq = starts[s].seq + i, timestamp = starts[s].base + i * 3000;

      check_map (&splice, seq, timestamp, seq, timestamp);
    }
    CHECK_INT (weir_splice_end (&splice), 199999 * SECOND / 30);
  }
}

static void
the_second_run_continues_the_numbers (void)
{
  static const struct {
    uint16_t seq, next_seq;
    uint32_t base, next_base;
  } cases[] = {
    { 100, 5000, 1000, 777777 },
    { 100, 100, 1000, 1000 },
    { 65530, 3, UINT32_MAX - 5000, 5 },
    { 3, 65535, 5, UINT32_MAX - 5 },
    { 0, 32768, 0, 0x80000000 },
  };

  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    WeirSplice splice;

    weir_splice_init (&splice, 90000);
    weir_splice_begin (&splice, cases[c].base, 0);
    for (int i = 0; i < 10; i++)
      check_map (&splice, cases[c].seq + i, (int64_t) cases[c].base + i * 3000, cases[c].seq + i,
          (int64_t) cases[c].base + i * 3000);
    CHECK_INT (weir_splice_end (&splice), 300 * MS);

    // One second of outage: 1.3 s are 117000 ticks.
    weir_splice_begin (&splice, cases[c].next_base, 1300 * MS);
    for (int i = 0; i < 10; i++)
      check_map (&splice, cases[c].next_seq + i, (int64_t) cases[c].next_base + i * 3000,
          cases[c].seq + 10 + i, (int64_t) cases[c].base + 117000 + i * 3000);
    CHECK_INT (weir_splice_end (&splice), 1600 * MS);
  }
}

static void
a_base_before_the_first_packet_keeps_the_distance (void)
{
  WeirSplice splice;

  weir_splice_init (&splice, 90000);
  weir_splice_begin (&splice, 1000, 0);
  check_map (&splice, 1, 10000, 1, 10000);
  CHECK_INT (weir_splice_end (&splice), 100 * MS);
  weir_splice_begin (&splice, 50000, SECOND);
  check_map (&splice, 900, 54500, 2, 1000 + 90000 + 4500);
  CHECK_INT (weir_splice_end (&splice), 1050 * MS);
}

static void
a_base_after_the_first_packet_does_not_move_the_end_back (void)
{
  WeirSplice splice;

  weir_splice_init (&splice, 90000);
  weir_splice_begin (&splice, 10, 0);
  check_map (&splice, 1, -90, 1, -90);
  CHECK_INT (weir_splice_end (&splice), 0);
}

// A track that was silent in the first run of its presentation begins at the same time as the other
// tracks, so the splice after it is not a jump.
static void
a_first_run_may_begin_late (void)
{
  WeirSplice splice;

  weir_splice_init (&splice, 90000);
  weir_splice_begin (&splice, 4000, 3600 * SECOND);
  check_map (&splice, 70, 4000, 70, 4000);
  check_map (&splice, 71, 94000, 71, 94000);
  CHECK_INT (weir_splice_end (&splice), 3601 * SECOND);
  weir_splice_begin (&splice, 123, 3603 * SECOND);
  check_map (&splice, 9, 123, 72, 4000 + 3 * 90000);
  CHECK_INT (weir_splice_end (&splice), 3603 * SECOND);
}

static void
packets_reordered_within_a_run_keep_their_numbers (void)
{
  static const int order[] = { 0, 2, 1, 5, 4, 3, 9, 6, 8, 7, 7 };
  WeirSplice splice;

  weir_splice_init (&splice, 90000);
  for (int run = 0; run < 3; run++) {
    uint16_t in = (uint16_t) (65530 + run * 4000);
    uint32_t base = UINT32_MAX - 9000 + (uint32_t) run * 123456789;

    weir_splice_begin (&splice, base, run * 10 * SECOND);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
      check_map (&splice, in + order[i], (int64_t) base + order[i] * 3000,
          65530 + run * 10 + order[i],
          (int64_t) UINT32_MAX - 9000 + run * 900000 + order[i] * 3000);
    CHECK_INT (weir_splice_end (&splice), run * 10 * SECOND + 300 * MS);
  }
}

// The first packet to arrive need not be the first one sent. Numbers below it are still free.
static void
packets_from_before_the_first_one_are_kept_in_the_first_run (void)
{
  WeirSplice splice;

  weir_splice_init (&splice, 90000);
  weir_splice_begin (&splice, 6000, 0);
  check_map (&splice, 1, 6000, 1, 6000);
  check_map (&splice, 65535, 0, 65535, 0);
  check_map (&splice, 2, 9000, 2, 9000);
  weir_splice_begin (&splice, 0, SECOND);
  check_map (&splice, 40000, 0, 3, 96000);
}

static void
packets_from_before_a_splice_are_dropped (void)
{
  WeirSplice splice;

  weir_splice_init (&splice, 90000);
  weir_splice_begin (&splice, 0, 0);
  check_map (&splice, 10, 0, 10, 0);
  check_map (&splice, 11, 3000, 11, 3000);
  weir_splice_begin (&splice, 50000, SECOND);
  check_map (&splice, 0, 50000, 12, 90000);
  check_stale (&splice, 65535, 47000);
  check_stale (&splice, 65000, 47000);
  check_map (&splice, 1, 53000, 13, 93000);
  check_stale (&splice, 65534, 44000);
  check_map (&splice, 0, 50000, 12, 90000);
  check_map (&splice, 3, 59000, 15, 99000);
  check_map (&splice, 2, 56000, 14, 96000);
  // The dropped packet used no number.
  weir_splice_begin (&splice, 0, 2 * SECOND);
  check_map (&splice, 700, 0, 16, 180000);
}

// A run without packets uses neither numbers nor time.
static void
an_empty_run_uses_no_numbers (void)
{
  WeirSplice splice;

  weir_splice_init (&splice, 90000);
  weir_splice_begin (&splice, 100, 0);
  check_map (&splice, 10, 100, 10, 100);
  weir_splice_begin (&splice, 70000, SECOND);
  CHECK_INT (weir_splice_end (&splice), SECOND);
  weir_splice_begin (&splice, 3, 2 * SECOND);
  check_map (&splice, 900, 3, 11, 180100);
}

// Both counters wrap more than ten times, with 40 splices anywhere in between.
static void
numbers_wrap_across_splices (void)
{
  const uint32_t step = 65000;
  WeirSplice splice;
  int64_t n = 0, start = 0;
  uint32_t in_ts = UINT32_MAX - 2 * step;
  uint16_t in_seq = 65530;
  const uint32_t origin = in_ts;

  weir_splice_init (&splice, 1000);
  for (int run = 0; run < 41; run++) {
    weir_splice_begin (&splice, in_ts, start);
    for (int i = 0; i < 17001; i++, n++) {
      check_map (&splice, in_seq, in_ts, 65530 + n, origin + n * step);
      in_seq++;
      in_ts += step;
      if (!tap_ok)
        return;
    }
    CHECK_INT (weir_splice_end (&splice), (n - 1) * step * MS);
    start = n * step * MS;
    in_seq = (uint16_t) (in_seq * 31 + 12345);
    in_ts = in_ts * 2654435761u + 99991;
  }
  CHECK (n / 65536 >= 10);
  CHECK (n * step >> 32 >= 10);
}

// Audio and video of one presentation, spliced at the same instants.
static void
tracks_stay_in_sync (void)
{
  static const int64_t silences[] = { 20 * MS, SECOND, 123456789, 3601 * SECOND + 1, 333333333 };
  WeirSplice audio, video;
  uint32_t a = 0xfffff000, v = 17;
  const uint32_t a_origin = a, v_origin = v;
  uint16_t seq;
  uint32_t a_out = 0, v_out = 0;
  int64_t start = 0;

  weir_splice_init (&audio, 48000);
  weir_splice_init (&video, 90000);
  for (size_t run = 0; run <= 5; run++) {
    int64_t a_end, v_end, a_time, v_time;

    weir_splice_begin (&audio, a, start);
    weir_splice_begin (&video, v, start);
    for (uint32_t i = 0; i <= 1000; i++) {
      CHECK_INT (weir_splice_map (&audio, (uint16_t) i, a + i * 960, &seq, &a_out), 0);
      CHECK_INT (weir_splice_map (&video, (uint16_t) i, v + i * 1800, &seq, &v_out), 0);
    }
    a_end = weir_splice_end (&audio);
    v_end = weir_splice_end (&video);
    CHECK_INT (a_end, start + 20 * SECOND);
    CHECK_INT (v_end, a_end);
    // The readers' view: how far each track's timestamp has moved from its first.
    a_time = (int64_t) (a_out - a_origin) * SECOND / 48000;
    v_time = (int64_t) (v_out - v_origin) * SECOND / 90000;
    CHECK (llabs (a_end - a_time) <= SECOND / 48000 / 2 + 1);
    CHECK (llabs (v_end - v_time) <= SECOND / 90000 / 2 + 1);
    if (run < 5)
      start = v_end + silences[run];
    a = a * 69069 + 1;
    v = v * 1664525 + 7;
  }
}

// A gap that is wider than half of the range is followed packet by packet: two days at 90 kHz,
// where ticks * 10^9 no longer fits, and then a year.
static void
runs_of_a_year_are_exact (void)
{
  static const int64_t hours[] = { 48, 365 * 24 };

  for (size_t c = 0; c < 2; c++) {
    WeirSplice splice;
    uint16_t seq;
    uint32_t timestamp;
    int64_t ticks = 0;

    weir_splice_init (&splice, 90000);
    weir_splice_begin (&splice, 1, 0);
    for (int64_t i = 0; i <= hours[c]; i++) {
      ticks = i * 3600 * 90000;
      CHECK_INT (
          weir_splice_map (&splice, (uint16_t) i, (uint32_t) (1 + ticks), &seq, &timestamp), 0);
      CHECK_INT (timestamp, (uint32_t) (1 + ticks));
    }
    CHECK_INT (weir_splice_end (&splice), hours[c] * 3600 * SECOND);

    weir_splice_begin (&splice, 9, hours[c] * 3600 * SECOND + SECOND);
    check_map (&splice, 4, 9, hours[c] + 1, 1 + ticks + 90000);
    CHECK_INT (weir_splice_end (&splice), (hours[c] * 3600 + 1) * SECOND);
  }
}

static void
every_clock_rate_works (void)
{
  static const struct {
    uint32_t rate, taken_as;
  } rates[] = { { 0, 90000 }, { 1, 1 }, { 8000, 8000 }, { 90000, 90000 },
    { UINT32_MAX, UINT32_MAX } };

  for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
    uint32_t rate = rates[r].taken_as, second = rate < INT32_MAX ? rate : 0;
    WeirSplice splice;

    weir_splice_init (&splice, rates[r].rate);
    weir_splice_begin (&splice, 5, 0);
    check_map (&splice, 1, 5, 1, 5);
    check_map (&splice, 2, (int64_t) 5 + second, 2, (int64_t) 5 + second);
    CHECK_INT (weir_splice_end (&splice), second ? SECOND : 0);
    weir_splice_begin (&splice, 1000, 3 * SECOND);
    check_map (&splice, 1, 1000, 3, 5 + (int64_t) rate * 3);
  }
}

int
main (void)
{
  RUN (packets_before_the_first_run_are_refused);
  RUN (the_first_run_passes_unchanged);
  RUN (the_second_run_continues_the_numbers);
  RUN (a_base_before_the_first_packet_keeps_the_distance);
  RUN (a_base_after_the_first_packet_does_not_move_the_end_back);
  RUN (a_first_run_may_begin_late);
  RUN (packets_reordered_within_a_run_keep_their_numbers);
  RUN (packets_from_before_the_first_one_are_kept_in_the_first_run);
  RUN (packets_from_before_a_splice_are_dropped);
  RUN (an_empty_run_uses_no_numbers);
  RUN (numbers_wrap_across_splices);
  RUN (tracks_stay_in_sync);
  RUN (runs_of_a_year_are_exact);
  RUN (every_clock_rate_works);
  return tap_done ();
}
