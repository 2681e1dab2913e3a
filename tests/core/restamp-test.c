// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/restamp.h"

#include <stdlib.h>

#include "tap.h"

#define SECOND INT64_C (1000000000)
#define MS (SECOND / 1000)
#define FRAME 3600  // ticks in 40 ms
#define LIMIT 90000 // ticks, the tests' limit of one second

typedef struct {
  int64_t at; // ms
  uint16_t seq;
  int64_t in, out;
  WeirRestampFault fault;
  bool late;
  bool same_frame; // no marker
  uint32_t ssrc;
} Step;

static void
run_from (const Step *steps, size_t n, uint16_t seq, uint32_t timestamp, bool frames_marked)
{
  WeirRestamp restamp;
  uint64_t expected[WEIR_RESTAMP_N_FAULTS] = { 0 }, late = 0;

  weir_restamp_init (&restamp, 90000, SECOND, frames_marked);
  for (size_t i = 0; i < n; i++) {
    WeirRtp rtp = { .seq = (uint16_t) (steps[i].seq + seq),
      .timestamp = (uint32_t) steps[i].in + timestamp,
      .ssrc = steps[i].ssrc,
      .marker = !steps[i].same_frame };

    CHECK_INT (
        weir_restamp_map (&restamp, &rtp, steps[i].at * MS), (uint32_t) (steps[i].out + timestamp));
    if (steps[i].late)
      late++;
    else
      expected[steps[i].fault]++;
  }
  for (int i = 0; i < WEIR_RESTAMP_N_FAULTS; i++)
    CHECK_INT (restamp.count[i], expected[i]);
  CHECK_INT (restamp.n_late, late);
}

// The result is the same wherever the numbers wrap.
static void
run (const Step *steps, size_t n)
{
  static const uint16_t seqs[] = { 0, 1, 65533, 65535, 32767 };
  static const uint32_t timestamps[] = { 0, UINT32_MAX, UINT32_MAX - FRAME, INT32_MAX };

  for (size_t s = 0; s < sizeof seqs / sizeof *seqs; s++) {
    for (size_t t = 0; t < sizeof timestamps / sizeof *timestamps; t++)
      run_from (steps, n, seqs[s], timestamps[t], true);
  }
}

#define STEPS(...)                                                                                 \
  static const Step steps[] = { __VA_ARGS__ };                                                     \
  run (steps, sizeof steps / sizeof *steps)

static void
a_sound_stream_is_unchanged (void)
{
  STEPS ({ 0, 1, 0, 0, .same_frame = true }, { 3, 2, 0, 0 }, { 40, 3, FRAME, FRAME },
      { 85, 4, 2 * FRAME, 2 * FRAME },
      // A burst, a pause that the timestamps show, and a pause within the limit.
      { 85, 5, 20 * FRAME, 20 * FRAME }, { 20000, 6, 1800000, 1800000 },
      { 21030, 7, 1800000 + FRAME, 1800000 + FRAME });
}

static void
after_a_jump_ahead_timestamps_follow_arrival (void)
{
  STEPS ({ 0, 1, 0, 0 }, { 40, 2, FRAME, FRAME },
      { 80, 3, LIMIT + 2 * FRAME + 1, 2 * FRAME, WEIR_RESTAMP_JUMP },
      { 120, 4, LIMIT + 3 * FRAME + 1, 3 * FRAME },
      { 160, 5, INT32_MAX, 4 * FRAME, WEIR_RESTAMP_JUMP },
      { 200, 6, (int64_t) INT32_MAX + FRAME, 5 * FRAME });
}

static void
a_jump_up_to_the_limit_is_kept (void)
{
  STEPS ({ 0, 1, 0, 0 }, { 40, 2, LIMIT + FRAME, LIMIT + FRAME });
}

static void
after_a_step_back_timestamps_follow_arrival (void)
{
  STEPS ({ 0, 1, 900000, 900000 }, { 40, 2, 899999, 900000 + FRAME, WEIR_RESTAMP_BACK },
      { 80, 3, 899999 + FRAME, 900000 + 2 * FRAME },
      // A new frame gets a new timestamp even at the same moment.
      { 80, 4, 0, 900000 + 2 * FRAME + 1, WEIR_RESTAMP_BACK });
}

static void
frames_with_a_stalled_clock_follow_arrival (void)
{
  STEPS ({ 0, 1, 0, 0 }, { 40, 2, 0, 0 }, { 1000, 3, 0, 0 },
      { 1001, 4, 0, 90090, WEIR_RESTAMP_STALL, .same_frame = true },
      { 1002, 5, 0, 90090, .same_frame = true }, { 1003, 6, 0, 90090 },
      { 1041, 7, 0, 90090 + FRAME, WEIR_RESTAMP_STALL },
      { 1081, 8, 0, 90090 + 2 * FRAME, WEIR_RESTAMP_STALL },
      // The timestamps advance again.
      { 1121, 9, FRAME, 90090 + 3 * FRAME }, { 1122, 10, FRAME, 90090 + 3 * FRAME });
}

static void
a_pause_missing_from_the_timestamps_is_added (void)
{
  STEPS ({ 0, 1, 0, 0 }, { 5000, 2, FRAME, 450000, WEIR_RESTAMP_STALL },
      { 5040, 3, 2 * FRAME, 450000 + FRAME });
}

static void
a_new_source_continues_from_the_last (void)
{
  STEPS ({ 0, 1, 0, 0, .ssrc = 1 }, { 40, 40000, 77777, FRAME, WEIR_RESTAMP_SOURCE, .ssrc = 2 },
      { 80, 40001, 77777 + FRAME, 2 * FRAME, .ssrc = 2 },
      { 120, 39000, 5, 3 * FRAME, WEIR_RESTAMP_SOURCE, .ssrc = 3 });
}

static void
a_late_packet_gets_the_timestamp_it_would_have_had (void)
{
  STEPS ({ 0, 1, 0, 0 }, { 40, 3, 2 * FRAME, 2 * FRAME },
      { 120, 5, 1000, 2 * FRAME + 2 * FRAME, WEIR_RESTAMP_BACK },
      { 121, 2, FRAME, FRAME, .late = true }, { 122, 4, 1000 - FRAME, 1000 - FRAME, .late = true },
      { 123, 5, 1000, 4 * FRAME, .late = true }, { 160, 6, 1000 + FRAME, 5 * FRAME });
}

static void
restarted_sequence_numbers_are_not_late (void)
{
  STEPS ({ 0, 5000, 0, 0 }, { 40, 10, FRAME, FRAME }, { 80, 11, 2 * FRAME, 2 * FRAME },
      { 120, 10, FRAME, FRAME, .late = true }, { 120, 12, 0, 3 * FRAME, WEIR_RESTAMP_BACK });
}

static void
numbers_restarted_a_little_behind_are_not_late (void)
{
  STEPS ({ 0, 500, 900000, 900000 }, { 40, 400, 5, 900000 + FRAME, WEIR_RESTAMP_BACK },
      { 80, 401, 5 + FRAME, 900000 + 2 * FRAME },
      { 120, 300, INT32_MAX / 2, 900000 + 3 * FRAME, WEIR_RESTAMP_JUMP });
}

static void
audio_needs_no_markers (void)
{
  static const Step steps[] = { { 0, 1, 0, 0, .same_frame = true },
    { 1020, 2, 0, 91800, WEIR_RESTAMP_STALL, .same_frame = true },
    { 1040, 3, 0, 93600, WEIR_RESTAMP_STALL, .same_frame = true } };

  run_from (steps, 3, 0, 0, false);
}

// Whatever comes, timestamps never go back in the order of sequence numbers.
static void
random_input_comes_out_monotone (void)
{
  WeirRestamp restamp;
  int64_t now = 0;
  uint32_t last = 0;
  uint16_t seq = 0;

  srand (5);
  weir_restamp_init (&restamp, 90000, SECOND, true);
  for (int i = 0; i < 200000; i++) {
    WeirRtp rtp = { .timestamp = (uint32_t) rand () << 1,
      .seq = (uint16_t) (rand () % 4 ? ++seq : (seq -= (uint16_t) (rand () % 2000))),
      .ssrc = (uint32_t) (rand () % 100 == 0),
      .marker = rand () % 2 };
    uint64_t n_late = restamp.n_late;
    uint32_t out;

    now += rand () % (3 * SECOND / 2) - SECOND / 8;
    out = weir_restamp_map (&restamp, &rtp, now);
    if (restamp.n_late == n_late) {
      CHECK (i == 0 || (int32_t) (out - last) >= 0);
      last = out;
    }
  }
}

static void
any_clock_rate_works (void)
{
  static const uint32_t rates[] = { 1, 8000, 90000, UINT32_MAX };

  for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
    WeirRestamp restamp;
    WeirRtp rtp = { .seq = 1, .timestamp = 7, .marker = true };
    uint32_t expected = 7 + (uint32_t) (10 * (uint64_t) rates[i]);

    weir_restamp_init (&restamp, rates[i], SECOND, true);
    CHECK_INT (weir_restamp_map (&restamp, &rtp, 0), 7);
    rtp.seq++;
    rtp.timestamp--;
    CHECK_INT (weir_restamp_map (&restamp, &rtp, 10 * SECOND), expected);
  }
}

int
main (void)
{
  RUN (a_sound_stream_is_unchanged);
  RUN (after_a_jump_ahead_timestamps_follow_arrival);
  RUN (a_jump_up_to_the_limit_is_kept);
  RUN (after_a_step_back_timestamps_follow_arrival);
  RUN (frames_with_a_stalled_clock_follow_arrival);
  RUN (a_pause_missing_from_the_timestamps_is_added);
  RUN (a_new_source_continues_from_the_last);
  RUN (a_late_packet_gets_the_timestamp_it_would_have_had);
  RUN (restarted_sequence_numbers_are_not_late);
  RUN (numbers_restarted_a_little_behind_are_not_late);
  RUN (audio_needs_no_markers);
  RUN (random_input_comes_out_monotone);
  RUN (any_clock_rate_works);
  return tap_done ();
}
