// SPDX-License-Identifier: LGPL-2.1-or-later
#include "pace/pacer.h"

#include "tap.h"

#define US INT64_C (1000)
#define MS INT64_C (1000000)
#define SECOND INT64_C (1000000000)
#define MOST 20000

typedef struct {
  int64_t arrival;
  WeirPacePacket packet;
} Arrival;

static WeirPacer pacer;
static Arrival arrivals[MOST];
static int64_t left[MOST]; // when each packet left
static size_t n_arrivals, n_left;
static int64_t now_ns;
static uint32_t seed;

static const WeirPaceSettings by_timestamp = { .mode = WEIR_PACE_TIMESTAMP, .max_burst = 1 };

static uint32_t
draw (uint32_t below)
{
  seed = seed * 1664525 + 1013904223;
  return (seed >> 8) % below;
}

static void
begin (const WeirPaceSettings *settings)
{
  weir_pacer_free (&pacer);
  weir_pacer_init (&pacer, settings);
  n_arrivals = n_left = 0;
  now_ns = INT64_MIN / 8;
  seed = 1;
}

static void
add (int64_t arrival, int64_t time, size_t size)
{
  arrivals[n_arrivals++] = (Arrival) { arrival, { .size = size, .time_ns = time } };
}

static void
add_rtp (int64_t arrival, int64_t time, uint32_t rtp_time, size_t size)
{
  arrivals[n_arrivals++] = (Arrival) { arrival,
    { .size = size, .time_ns = time, .is_rtp = true, .rtp_time = rtp_time } };
}

static void
add_frame (int64_t arrival, int64_t time, size_t n)
{
  for (size_t i = 0; i < n; i++)
    add (arrival, time, 1000);
}

// Advances the time from event to event, each as exact as `oversleep` allows.
static void
play (int64_t oversleep)
{
  size_t next = 0;

  while (next < n_arrivals || weir_pacer_queued (&pacer) > 0) {
    int64_t due = weir_pacer_due (&pacer, now_ns);

    if (due != WEIR_PACE_NEVER && due > now_ns && oversleep > 0)
      due += draw ((uint32_t) oversleep);
    if (next < n_arrivals && arrivals[next].arrival <= due) {
      now_ns = arrivals[next].arrival > now_ns ? arrivals[next].arrival : now_ns;
      CHECK_INT (weir_pacer_push (&pacer, &arrivals[next++].packet, now_ns), 0);
      continue;
    }
    now_ns = due > now_ns ? due : now_ns;
    while (weir_pacer_due (&pacer, now_ns) <= now_ns) {
      weir_pacer_pop (&pacer, now_ns);
      left[n_left++] = now_ns;
    }
  }
  CHECK_INT (n_left, n_arrivals);
  CHECK_INT (pacer.counts.in, n_arrivals);
  CHECK_INT (pacer.counts.out, n_arrivals);
}

static void
check_left (const int64_t *expected, size_t n, int64_t unit)
{
  CHECK_INT (n_left, n);
  for (size_t i = 0; i < n && i < n_left; i++)
    CHECK_INT (left[i], expected[i] * unit);
}

// ---- by timestamp ----

static void
frames_leave_evenly_over_their_time (void)
{
  begin (&by_timestamp);
  for (int64_t k = 0; k < 50; k++)
    add_frame (k * 40 * MS, k * 40 * MS, 16);
  play (0);
  for (size_t i = 16; i < n_left; i++) // the length of the first frame is not known yet
    CHECK_INT (left[i], (int64_t) i * 2500 * US);
  CHECK_INT (weir_pacer_latency (&pacer), 40 * MS);
  CHECK_INT (pacer.counts.late, 0);
}

// As from a file: all packets are there at once.
static void
early_packets_wait_for_their_time (void)
{
  begin (&by_timestamp);
  for (int64_t k = 0; k < 50; k++)
    add_frame (0, k * 40 * MS, 4 + (size_t) k % 3);
  play (0);
  for (size_t k = 0, i = 0; k < 49; i += 4 + k % 3, k++) {
    for (size_t j = 0; j < 4 + k % 3; j++) {
      int64_t off = left[i + j] - (int64_t) (k * 40 * MS + j * 40 * MS / (4 + k % 3));

      CHECK (off <= 0 && off > -6); // each is rounded down
    }
  }
}

static void
packets_leave_in_groups_of_max_burst (void)
{
  static const struct {
    uint32_t max_burst;
    int64_t expected[8]; // ms after the start
  } cases[] = {
    { 1, { 0, 5, 10, 15, 20, 25, 30, 35 } },
    { 2, { 0, 0, 10, 10, 20, 20, 30, 30 } },
    { 4, { 0, 0, 0, 0, 20, 20, 20, 20 } },
    { 5, { 0, 0, 0, 0, 0, 25, 25, 25 } },
    { 8, { 0, 0, 0, 0, 0, 0, 0, 0 } },
    { 9, { 0, 0, 0, 0, 0, 0, 0, 0 } },
  };

  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    WeirPaceSettings settings = by_timestamp;

    settings.max_burst = cases[c].max_burst;
    begin (&settings);
    for (int64_t k = 0; k < 3; k++)
      add_frame (k * 40 * MS, k * 40 * MS, 8);
    play (0);
    for (size_t i = 0; i < 8; i++)
      CHECK_INT (left[8 + i], 40 * MS + cases[c].expected[i] * MS);
  }
}

// A source that sends the packets of a frame one by one gets no burst past the pacer.
static void
packets_that_trickle_in_leave_without_a_burst (void)
{
  for (uint32_t max_burst = 1; max_burst < 4; max_burst++) {
    WeirPaceSettings settings = by_timestamp;
    size_t longest = 0, n = 0;

    settings.max_burst = max_burst;
    begin (&settings);
    for (int64_t k = 0; k < 20; k++) {
      for (int64_t i = 0; i < 16; i++)
        add_rtp (k * 40 * MS + i * 20 * US, k * 40 * MS + i * 20 * US, (uint32_t) k, 1000);
    }
    play (0);
    for (size_t i = 17; i < n_left; i++) {
      n = left[i] - left[i - 1] < MS ? n + 1 : 1;
      longest = n > longest ? n : longest;
    }
    CHECK_INT (longest, max_burst);
    for (size_t i = 32; i < n_left; i += 16)
      CHECK (left[i] - left[i - 16] == 40 * MS);
  }
}

static void
late_packets_are_spread_over_the_rest_of_the_frame (void)
{
  begin (&by_timestamp);
  add_frame (0, 0, 1);
  add_frame (40 * MS, 40 * MS, 1);
  add_frame (74 * MS, 40 * MS, 3);
  add_frame (80 * MS, 80 * MS, 1);
  play (0);
  check_left ((const int64_t[]) { 0, 40, 74, 76, 78, 80 }, 6, MS);
}

static void
late_frames_cause_a_delay_that_shrinks (void)
{
  begin (&by_timestamp);
  add_frame (0, 0, 4);
  add_frame (40 * MS, 40 * MS, 4);
  add_frame (96 * MS, 80 * MS, 4);
  play (0);
  CHECK_INT (left[8], 96 * MS);
  CHECK_INT (left[9], 106 * MS);
  CHECK_INT (pacer.delay, 16 * MS);
  CHECK_INT (weir_pacer_latency (&pacer), 56 * MS);
  n_arrivals = n_left = 0;
  pacer.counts.in = pacer.counts.out = 0;
  for (int64_t k = 4; k < 500; k++)
    add_frame (k * 40 * MS, k * 40 * MS, 4);
  play (0);
  CHECK_INT (left[0], 160 * MS + 16 * MS - 16 * MS / 64);
  CHECK (pacer.delay < 16 * MS / 100);
  for (size_t i = 1; i < n_left; i++)
    CHECK (left[i] - left[i - 1] > 9 * MS && left[i] - left[i - 1] < 11 * MS);
}

static void
planned_upstream_delay_is_not_lateness (void)
{
  begin (&by_timestamp);
  pacer.upstream_ns = 200 * MS;
  add_frame (150 * MS, 0, 2);
  add_frame (190 * MS, 40 * MS, 2);
  play (0);
  CHECK_INT (left[0], 200 * MS);
  CHECK_INT (left[1], 220 * MS);
  CHECK_INT (left[2], 240 * MS);
  CHECK_INT (pacer.delay, 0);
}

static void
no_frame_is_spread_over_more_than_a_second (void)
{
  begin (&by_timestamp);
  add_frame (0, 0, 2);
  add_frame (0, 8 * SECOND, 2);
  play (0);
  check_left ((const int64_t[]) { 0, 500, 8000, 8500 }, 4, MS);
}

// ---- times ----

#define NONE WEIR_PACE_NO_TIME

static void
times_are_repaired_to_never_go_back (void)
{
  static const struct {
    const char *what;
    int64_t times[6]; // ms
    int64_t expected[6];
    unsigned repaired;
  } cases[] = {
    { "valid", { 0, 40, 80, 120, 160, 200 }, { 0, 40, 80, 120, 160, 200 }, 0 },
    { "reordered pictures", { 0, 120, 40, 80, 240, 160 }, { 0, 120, 160, 200, 240, 300 }, 3 },
    { "far back", { 0, 40, -5000, -4960, -4920, -4880 }, { 0, 40, 80, 120, 160, 200 }, 1 },
    { "far ahead", { 0, 40, 90000, 90040, 90080, 90120 }, { 0, 40, 80, 120, 160, 200 }, 1 },
    { "a pause is not a jump", { 0, 40, 8000, 8040, 8080, 8120 }, { 0, 40, 8000, 8040, 8080, 8120 },
        0 },
    { "the first is wrong", { 50000, 50040, 50080, 50120, 50160, 50200 },
        { 0, 40, 80, 120, 160, 200 }, 1 },
    { "missing", { 0, 40, NONE, NONE, 160, 200 }, { 0, 40, 80, 120, 160, 200 }, 2 },
  };

  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    printf ("# %s\n", cases[c].what);
    begin (&by_timestamp);
    for (size_t i = 0; i < 6; i++)
      add (0, cases[c].times[i] == NONE ? NONE : cases[c].times[i] * MS, 1000);
    play (0);
    for (size_t i = 0; i < 5; i++)
      CHECK_INT (left[i], cases[c].expected[i] * MS);
    CHECK_INT (pacer.counts.repaired, cases[c].repaired);
  }
}

static void
packets_without_times_leave_as_they_come (void)
{
  begin (&by_timestamp);
  for (int64_t i = 0; i < 10; i++)
    add (i * i * MS, NONE, 1000);
  play (0);
  for (int64_t i = 0; i < 10; i++)
    CHECK_INT (left[i], i * i * MS);
  CHECK_INT (pacer.counts.repaired, 10);
}

static void
rtp_frames_without_times_take_their_arrival (void)
{
  begin (&by_timestamp);
  add_rtp (0, 0, 0, 1000);
  for (uint32_t k = 1; k < 10; k++)
    for (int i = 0; i < 4; i++)
      add_rtp (k * 40 * MS, NONE, k, 1000);
  play (0);
  for (size_t i = 5; i < n_left; i++)
    CHECK_INT (left[i], 40 * MS + (int64_t) (i - 1) * 10 * MS);
}

static void
a_clock_set_back_does_not_lengthen_a_wait (void)
{
  WeirPacePacket packet = { .size = 1000, .time_ns = 100 * SECOND };

  begin (&by_timestamp);
  CHECK_INT (weir_pacer_push (&pacer, &packet, 100 * SECOND), 0);
  packet.time_ns += 40 * MS;
  CHECK_INT (weir_pacer_push (&pacer, &packet, 100 * SECOND), 0);
  weir_pacer_pop (&pacer, 100 * SECOND);
  CHECK_INT (weir_pacer_due (&pacer, 100 * SECOND + 10 * MS), 100 * SECOND + 40 * MS);
  CHECK_INT (weir_pacer_due (&pacer, 20 * SECOND), 20 * SECOND + 30 * MS);
  CHECK_INT (weir_pacer_due (&pacer, 20 * SECOND + 30 * MS), 20 * SECOND + 30 * MS);
  // Threads that read the clock in another order do not set it back.
  CHECK_INT (weir_pacer_due (&pacer, 20 * SECOND + 29 * MS), 20 * SECOND + 30 * MS);
}

static void
a_clock_set_forward_changes_one_frame_only (void)
{
  begin (&by_timestamp);
  for (int64_t k = 0; k < 5; k++)
    add_frame (k * 40 * MS, k * 40 * MS, 4);
  for (int64_t k = 5; k < 10; k++)
    add_frame (3600 * SECOND + k * 40 * MS, k * 40 * MS, 4);
  play (0);
  CHECK_INT (n_left, 40);
  for (size_t i = 4; i < 20; i++) // the length of the first frame is not known yet
    CHECK_INT (left[i], (int64_t) i * 10 * MS);
  for (size_t i = 20; i < 40; i++)
    CHECK_INT (left[i], 3600 * SECOND + (int64_t) i * 10 * MS);
  CHECK_INT (pacer.counts.repaired, 1);
}

// ---- waking late ----

static void
a_late_wake_up_is_caught_up (void)
{
  begin (&by_timestamp);
  for (int64_t k = 0; k < 200; k++)
    add_frame (k * 40 * MS, k * 40 * MS, 10);
  play (9 * MS); // more than two gaps
  for (size_t i = 10; i < n_left; i++) {
    CHECK (left[i] >= (int64_t) i * 4 * MS);
    CHECK (left[i] < (int64_t) i * 4 * MS + 9 * MS);
  }
  CHECK (pacer.counts.late > 0);
  CHECK (pacer.counts.latest_ns > WEIR_PACE_LATE_NS && pacer.counts.latest_ns < 9 * MS);
}

// ---- by bitrate ----

static void
check_bucket (int64_t bitrate, int64_t burst, int64_t largest, int64_t slack)
{
  int64_t most = burst > largest ? burst : largest;

  for (size_t i = 0; i < n_left; i++) {
    int64_t bytes = 0;

    for (size_t j = i; j < n_left && j < i + 400; j++) {
      bytes += (int64_t) arrivals[j].packet.size;
      if ((double) (bytes - most) * 8e9
          > (double) (left[j] - left[i] + slack) * (double) bitrate + 1e9) {
        CHECK (!"within the bucket");
        return;
      }
    }
  }
}

static void
no_period_exceeds_the_rate (void)
{
  static const struct {
    uint64_t bitrate;
    uint32_t burst;
    int64_t oversleep;
  } cases[] = { { 1000000, 0, 0 }, { 4000000, 3000, 0 }, { 4000000, 20000, 0 },
    { 6000000, 5000, 2 * MS }, { 1234567, 1, 0 }, { 4000000, 3000, 300 * MS } };

  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    const WeirPaceSettings settings = {
      .mode = WEIR_PACE_BITRATE, .bitrate = cases[c].bitrate, .burst = cases[c].burst
    };
    int64_t oversleep = cases[c].oversleep, at = 0;

    begin (&settings);
    for (int i = 0; i < 2000; i++) {
      at += draw (20) == 0 ? draw (80) * MS : 0; // bursts, and silence between them
      add (at, NONE, 40 + draw (1461));
    }
    play (oversleep);
    check_bucket ((int64_t) cases[c].bitrate, cases[c].burst, 1500,
        oversleep < WEIR_PACE_LATE_NS ? oversleep : WEIR_PACE_LATE_NS);
  }
}

static void
waiting_packets_leave_at_the_full_rate (void)
{
  const WeirPaceSettings settings = { .mode = WEIR_PACE_BITRATE, .bitrate = 8000000 };

  begin (&settings);
  for (int i = 0; i < 1000; i++)
    add (0, NONE, i % 2 ? 1500 : 500);
  play (300 * US);
  // A byte takes a microsecond. The last packet leaves at the start of its time.
  CHECK (left[999] >= (1000 * 1000 - 1500) * US);
  CHECK (left[999] < (1000 * 1000 - 1500) * US + 300 * US);
}

// A packet of one byte takes 8/7 ns.
static void
rounding_never_exceeds_the_rate (void)
{
  const WeirPaceSettings settings = { .mode = WEIR_PACE_BITRATE, .bitrate = 7000000000 };

  begin (&settings);
  for (int i = 0; i < 1000; i++)
    add (0, NONE, 1);
  play (0);
  CHECK (left[999] * 7 >= 999 * 8);
}

static void
a_burst_leaves_at_once_after_silence (void)
{
  const WeirPaceSettings settings = {
    .mode = WEIR_PACE_BITRATE, .bitrate = 8000000, .burst = 3000
  };
  static const int64_t expected[] = { 0, 0, 0, 1, 2, 100, 100, 100, 101, 102 };

  begin (&settings);
  for (int64_t i = 0; i < 10; i++)
    add (i / 5 * 100 * MS, NONE, 1000);
  play (0);
  check_left (expected, 10, MS);
}

// A stream of 25 frames per second whose frames differ in size by a factor of ten.
static void
a_measured_rate_follows_the_stream (void)
{
  const WeirPaceSettings settings = { .mode = WEIR_PACE_BITRATE };
  int64_t longest = 0, sum = 0;

  for (int early = 0; early < 2; early++) {
    begin (&settings);
    for (int64_t k = 0; k < 1500; k++) {
      size_t n = (k % 25 == 0 ? 30u : 3u) * (k < 500 ? 1 : k < 1000 ? 3 : 2);

      for (size_t i = 0; i < n; i++)
        add (early ? 0 : k * 40 * MS, k * 40 * MS, 1000);
    }
    play (0);
    longest = sum = 0;
    for (size_t i = 0; i < n_left; i++) {
      int64_t lag = left[i] - arrivals[i].packet.time_ns;

      longest = lag > longest ? lag : longest;
      sum += lag;
    }
    CHECK (longest < 3 * SECOND);
    CHECK (sum / (int64_t) n_left < SECOND);
    CHECK (left[n_left - 1] > 58 * SECOND && left[n_left - 1] < 62 * SECOND);
    CHECK (pacer.measured > 1.1e6 && pacer.measured < 0.8e7);
  }
}

// ---- by block ----

// Packets of 1000 bytes at 8 Mb/s: a block of 10 ms has ten. Sending the ninth packet of block k
// takes `takes[k]` ms.
typedef struct {
  int64_t takes[6];
  int64_t begins[6]; // ms
  int64_t deficits[6];
  unsigned overruns, starvations;
} BlockCase;

static void
play_blocks (const BlockCase *c)
{
  int64_t now = 0;

  for (int i = 0; i < 60; i++)
    CHECK_INT (weir_pacer_push (&pacer, &(WeirPacePacket) { 1000, i * MS, 0, false, 0 }, 0), 0);
  for (int i = 0; i < 60; i++) {
    int64_t due = weir_pacer_due (&pacer, now);

    now = due > now ? due : now;
    if (i % 10 == 0)
      CHECK_INT (now, c->begins[i / 10] * MS);
    weir_pacer_pop (&pacer, now);
    if (i % 10 == 0)
      CHECK_INT (pacer.deficit_ns, c->deficits[i / 10] * MS);
    if (i % 10 == 8)
      now += c->takes[i / 10] * MS;
  }
  CHECK_INT (pacer.counts.overruns, c->overruns);
  CHECK_INT (pacer.counts.starvations, c->starvations);
}

static void
blocks_keep_their_interval_and_deficits_are_made_up (void)
{
  static const BlockCase cases[] = {
    { { 0 }, { 0, 0, 10, 20, 30, 40 }, { 0 }, 0, 0 },
    // The cycle begins when the first block, the player's buffer, has left.
    { { 3, 3, 3, 3, 3, 3 }, { 0, 3, 13, 23, 33, 43 }, { 0 }, 0, 0 },
    // A block takes 14 ms: the next begins 4 ms late, the one after it on time.
    { { 0, 14, 0, 0, 0, 0 }, { 0, 0, 14, 20, 30, 40 }, { 0, 0, 4, 0, 0, 0 }, 1, 0 },
    // 25 ms are made up over two blocks.
    { { 0, 35, 0, 0, 0, 0 }, { 0, 0, 35, 35, 35, 40 }, { 0, 0, 25, 15, 5, 0 }, 1, 1 },
    { { 0, 19, 8, 8, 8, 0 }, { 0, 0, 19, 27, 35, 43 }, { 0, 0, 9, 7, 5, 3 }, 1, 0 },
  };

  for (int measured = 0; measured < 2; measured++) {
    const WeirPaceSettings settings = {
      .mode = WEIR_PACE_BLOCK, .bitrate = measured ? 0 : 8000000, .block_ns = 10 * MS
    };

    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
      printf ("# %s, case %zu\n", measured ? "by times" : "by bytes", c);
      begin (&settings);
      play_blocks (&cases[c]);
    }
  }
}

// The reader plays from the end of the first block on. Two of the later blocks come too late, by
// 1 ms, and each packet of the last one by itself. A block is counted once.
static void
each_block_with_a_late_packet_is_a_starvation (void)
{
  const WeirPaceSettings settings = {
    .mode = WEIR_PACE_BLOCK, .bitrate = 8000000, .block_ns = SECOND
  };
  static const int64_t begins[] = { 0, 0, 1000, 3001, 4001, 7000 }; // ms
  static const int64_t each[] = { 0, 0, 0, 0, 0, 2 };               // ms, between packets
  static const unsigned starved[] = { 0, 0, 0, 1, 1, 2 };

  begin (&settings);
  for (size_t k = 0; k < 6; k++) {
    for (int i = 0; i < 1000; i++) {
      const int64_t now = (begins[k] + i * each[k]) * MS;

      CHECK_INT (weir_pacer_push (&pacer, &(WeirPacePacket) { .size = 1000 }, now), 0);
      CHECK (weir_pacer_due (&pacer, now) <= now);
      weir_pacer_pop (&pacer, now);
    }
    CHECK_INT (pacer.counts.starvations, starved[k]);
  }
}

// A socket takes a packet in parts. The reader plays from the end of the first block on, and its
// buffer ends with the second one, after 2 s.
static void
the_rest_of_a_packet_can_be_late_by_itself (void)
{
  const WeirPaceSettings settings = {
    .mode = WEIR_PACE_BLOCK, .bitrate = 8000000, .block_ns = SECOND
  };
  const WeirPacePacket packet = { .size = 1000000 };

  begin (&settings);
  for (int i = 0; i < 2; i++) {
    CHECK_INT (weir_pacer_push (&pacer, &packet, 0), 0);
    weir_pacer_pop (&pacer, 0);
    weir_pacer_go_on (&pacer, 500000, 100 * MS);
  }
  CHECK_INT (pacer.play_start_ns, 100 * MS);
  weir_pacer_go_on (&pacer, 400000, 1700 * MS); // its content begins after 1.6 s of play
  CHECK_INT (pacer.counts.starvations, 0);
  weir_pacer_go_on (&pacer, 400000, 1701 * MS);
  weir_pacer_go_on (&pacer, 300000, 1900 * MS);
  CHECK_INT (pacer.counts.starvations, 1);
}

// Blocks by timestamps do not run ahead over a gap.
static void
blocks_wait_for_a_gap_in_the_stream (void)
{
  const WeirPaceSettings settings = { .mode = WEIR_PACE_BLOCK, .block_ns = SECOND };

  begin (&settings);
  add (0, 0, 1000);
  add (0, 500 * MS, 1000);
  add (0, 4200 * MS, 1000);
  add (0, 4900 * MS, 1000);
  add (0, 5000 * MS, 1000);
  play (0);
  check_left ((const int64_t[]) { 0, 0, 3, 3, 4 }, 5, SECOND);
}

// ---- rounds ----

static void
rounds_are_never_early_and_at_most_a_round_late (void)
{
  static const int64_t rounds[] = { 5 * MS, 15 * MS, 33 * MS };

  for (size_t r = 0; r < 3; r++) {
    for (int64_t phase = -7 * MS; phase < 40 * MS; phase += 11 * MS) {
      WeirPaceSettings settings = by_timestamp;

      settings.round_ns = rounds[r];
      settings.phase_ns = phase;
      begin (&settings);
      for (int64_t k = 0; k < 50; k++)
        add_frame (k * 40 * MS, k * 40 * MS, 8);
      play (0);
      for (size_t i = 8; i < n_left; i++) {
        CHECK_INT ((left[i] - phase) % rounds[r], 0);
        CHECK (left[i] >= (int64_t) i * 5 * MS && left[i] < (int64_t) i * 5 * MS + rounds[r]);
      }
      CHECK_INT (weir_pacer_latency (&pacer), 40 * MS + rounds[r]);
      CHECK_INT (pacer.counts.latest_ns, 0);
    }
  }
}

// Of a round of 60 ms, at most 64000 bytes leave together. Frames of 40 ms have 30000 bytes, and
// every tenth has 160000, of which 80000 leave in a part of 20 ms.
static void
a_round_with_too_many_bytes_is_divided (void)
{
  WeirPaceSettings settings = by_timestamp;
  size_t bytes = 0, n_long = 0;

  settings.round_ns = 60 * MS;
  settings.round_bytes = 64000;
  begin (&settings);
  for (int64_t k = 0; k < 60; k++)
    add_frame (0, k * 40 * MS, k % 10 ? 30 : 160);
  play (0);
  for (size_t i = 160, first = i; i < n_left; i++) {
    CHECK_INT (left[i] % (20 * MS), 0);
    n_long += left[i] - left[i - 1] == 60 * MS;
    first = left[i] == left[i - 1] ? first : i;
    bytes = (i - first + 1) * 1000;
    CHECK (bytes <= 64000 || (bytes <= 80000 && left[i] - left[first - 1] == 20 * MS));
  }
  CHECK (n_long > 20); // of 40 rounds
  CHECK_INT (pacer.counts.latest_ns, 0);
  CHECK_INT (weir_pacer_latency (&pacer), 100 * MS);
}

static void
rounds_of_all_pacers_align_and_spread_over_their_parts (void)
{
  static const struct {
    int64_t round_ns;
    unsigned parts, i;
    uint64_t base_ns;
    int64_t phase_ns;
  } cases[] = {
    { 0, 4, 3, 7 * SECOND, 0 }, // no rounds
    { 20 * MS, 1, 0, 0, 0 },
    { 20 * MS, 1, 5, 0, 0 },
    { 20 * MS, 4, 0, 0, 0 },
    { 20 * MS, 4, 3, 0, 15 * MS },
    { 20 * MS, 4, 4, 0, 0 },
    { 20 * MS, 3, 2, 0, 13333332 }, // the parts are rounded down
    { 20 * MS, 1, 0, 7 * SECOND + 3 * MS, -3 * MS },
    { 20 * MS, 4, 3, 7 * SECOND + 3 * MS, 12 * MS },
    { 1, 1024, 1023, UINT64_MAX, 0 },
  };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    CHECK_INT (weir_pace_phase (cases[i].round_ns, cases[i].parts, cases[i].i, cases[i].base_ns),
        cases[i].phase_ns);
  // Pacers that began at different times have their rounds at the same times of the clock.
  for (uint64_t base = 0; base < 3 * SECOND; base += 7777777)
    CHECK_INT (((int64_t) base + weir_pace_phase (20 * MS, 4, 3, base)) % (20 * MS), 15 * MS);
}

static void
a_block_leaves_in_one_round (void)
{
  const WeirPaceSettings settings = {
    .mode = WEIR_PACE_BLOCK, .bitrate = 8000000, .block_ns = 20 * MS, .round_ns = 15 * MS
  };

  begin (&settings);
  for (int i = 0; i < 60; i++)
    add (1 * MS, NONE, 1000);
  play (1 * MS);
  for (size_t i = 1; i < 60; i++)
    CHECK (left[i] == left[i - 1] || i % 20 == 0);
}

// ---- creating, changing and flushing ----

static void
a_flush_forgets_the_queue_and_all_times (void)
{
  begin (&by_timestamp);
  for (int i = 0; i < 300; i++)
    weir_pacer_push (&pacer, &(WeirPacePacket) { 100, i * SECOND, 0, false, 0 }, 5 * SECOND);
  for (int i = 0; i < 100; i++)
    weir_pacer_pop (&pacer, i * SECOND);
  CHECK (pacer.delay > 0);
  weir_pacer_flush (&pacer);
  CHECK_INT (weir_pacer_queued (&pacer), 0);
  CHECK_INT (pacer.bytes, 0);
  CHECK_INT (weir_pacer_due (&pacer, 0), WEIR_PACE_NEVER);
  CHECK_INT (pacer.counts.in, 300);
  CHECK_INT (pacer.counts.out, 100);
  CHECK_INT (pacer.counts.flushed, 200);
  // Running time begins at 0 again.
  weir_pacer_push (&pacer, &(WeirPacePacket) { 100, 20 * MS, 0, false, 0 }, 0);
  CHECK_INT (weir_pacer_due (&pacer, 0), 20 * MS);
  CHECK_INT (pacer.counts.repaired, 0);
}

static void
a_queue_is_full_after_a_second (void)
{
  static const struct {
    WeirPaceSettings settings;
    size_t size;
    int64_t apart;
    size_t full; // packets after which the queue is full
    size_t half; // and half full
  } cases[] = {
    { { .mode = WEIR_PACE_TIMESTAMP, .max_burst = 1 }, 1000, 40 * MS, 26, 14 },
    { { .mode = WEIR_PACE_TIMESTAMP, .max_burst = 1 }, 1000, 3 * SECOND, 2, 2 },
    { { .mode = WEIR_PACE_TIMESTAMP, .max_burst = 1 }, 100, 0, 4096, 2048 },
    { { .mode = WEIR_PACE_TIMESTAMP, .max_burst = 1 }, 1 << 20, MS, 4, 2 },
    { { .mode = WEIR_PACE_BITRATE, .bitrate = 80000 }, 1000, MS, 10, 5 },
    { { .mode = WEIR_PACE_BITRATE }, 1000, 100 * MS, 11, 6 },
  };

  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    begin (&cases[c].settings);
    for (size_t i = 0; i < cases[c].full; i++) {
      CHECK (!weir_pacer_full (&pacer));
      CHECK (weir_pacer_half_full (&pacer) == (i >= cases[c].half));
      weir_pacer_push (&pacer,
          &(WeirPacePacket) { cases[c].size, (int64_t) i * cases[c].apart, 0, false, 0 }, 0);
    }
    CHECK (weir_pacer_full (&pacer));
  }
}

static void
a_change_of_mode_restarts_with_the_queue (void)
{
  static const WeirPaceSettings modes[] = {
    { .mode = WEIR_PACE_BITRATE, .bitrate = 8 }, // a packet takes 1000 s
    { .mode = WEIR_PACE_BLOCK, .bitrate = 8000000, .block_ns = MS },
    { .mode = WEIR_PACE_BITRATE, .bitrate = 8 },
    { .mode = WEIR_PACE_BLOCK, .block_ns = MS },
    { .mode = WEIR_PACE_BLOCK, .bitrate = 8000000, .block_ns = MS },
  };
  int64_t now = 0;

  begin (&modes[0]);
  for (int i = 0; i < 100; i++)
    weir_pacer_push (&pacer, &(WeirPacePacket) { 1000, i * SECOND, 0, false, 0 }, 0);
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    weir_pacer_set (&pacer, &modes[i]);
    // By block with a bitrate, two packets are two blocks, which leave at once.
    for (int n = modes[i].mode == WEIR_PACE_BLOCK && modes[i].bitrate > 0 ? 2 : 1; n > 0; n--) {
      CHECK (weir_pacer_due (&pacer, now) <= now);
      weir_pacer_pop (&pacer, now);
    }
    CHECK (weir_pacer_due (&pacer, now) > now);
    now += 100 * US;
  }
}

static void
a_change_of_rate_applies_from_the_next_packet (void)
{
  WeirPaceSettings settings = { .mode = WEIR_PACE_BITRATE, .bitrate = 8000000 };

  begin (&settings);
  for (int i = 0; i < 3; i++)
    weir_pacer_push (&pacer, &(WeirPacePacket) { .size = 1000 }, 0);
  weir_pacer_pop (&pacer, 0);
  settings.bitrate = 800000;
  weir_pacer_set (&pacer, &settings);
  CHECK_INT (weir_pacer_due (&pacer, 0), 1 * MS);
  weir_pacer_pop (&pacer, 1 * MS);
  CHECK_INT (weir_pacer_due (&pacer, 1 * MS), 11 * MS);
}

// Whatever comes in leaves in finite time, and nothing overflows (checked with UBSan).
static void
random_input_leaves_completely (void)
{
  static const int64_t odd[] = { NONE, INT64_MIN + 1, INT64_MAX, INT64_MAX / 4, -INT64_MAX / 4, 0,
    -1, INT64_MAX / 2 };

  for (int round = 0; round < 200; round++) {
    const WeirPaceSettings settings = {
      .mode = (WeirPaceMode) (round % 3),
      .max_burst = 1 + draw (3),
      .bitrate = round % 2 ? 1 + draw (100) * 1000u : 0,
      .burst = round % 5 ? draw (10000) : UINT32_MAX,
      .block_ns = round % 7 ? 1 + draw (1000000000) : 1,
      .round_ns = round % 4 ? 0 : 1 + draw (100000000),
      .phase_ns = draw (100000000),
      .round_bytes = round % 8 ? 0 : 1 + draw (4000),
    };

    weir_pacer_free (&pacer);
    weir_pacer_init (&pacer, &settings);
    for (int i = 0; i < 300; i++) {
      WeirPacePacket packet = { .size = draw (5) ? draw (3000) : SIZE_MAX,
        .time_ns = draw (3) ? draw (1000) * SECOND : odd[draw (8)],
        .duration_ns = draw (2) ? 0 : INT64_MAX,
        .is_rtp = draw (2),
        .rtp_time = draw (4) };

      CHECK_INT (weir_pacer_push (&pacer, &packet, draw (100) * SECOND), 0);
      if (draw (2) && weir_pacer_due (&pacer, draw (100) * SECOND) != WEIR_PACE_NEVER)
        weir_pacer_pop (&pacer, draw (100) * SECOND);
    }
    while (weir_pacer_queued (&pacer) > 0) {
      CHECK (weir_pacer_due (&pacer, draw (1000) * SECOND) < INT64_MAX / 8);
      weir_pacer_pop (&pacer, draw (1000) * SECOND);
    }
    CHECK_INT (pacer.counts.out, pacer.counts.in);
    CHECK_INT (pacer.bytes, 0);
  }
}

int
main (void)
{
  RUN (frames_leave_evenly_over_their_time);
  RUN (early_packets_wait_for_their_time);
  RUN (packets_leave_in_groups_of_max_burst);
  RUN (packets_that_trickle_in_leave_without_a_burst);
  RUN (late_packets_are_spread_over_the_rest_of_the_frame);
  RUN (late_frames_cause_a_delay_that_shrinks);
  RUN (planned_upstream_delay_is_not_lateness);
  RUN (no_frame_is_spread_over_more_than_a_second);
  RUN (times_are_repaired_to_never_go_back);
  RUN (packets_without_times_leave_as_they_come);
  RUN (rtp_frames_without_times_take_their_arrival);
  RUN (a_clock_set_back_does_not_lengthen_a_wait);
  RUN (a_clock_set_forward_changes_one_frame_only);
  RUN (a_late_wake_up_is_caught_up);
  RUN (no_period_exceeds_the_rate);
  RUN (waiting_packets_leave_at_the_full_rate);
  RUN (rounding_never_exceeds_the_rate);
  RUN (a_burst_leaves_at_once_after_silence);
  RUN (a_measured_rate_follows_the_stream);
  RUN (blocks_keep_their_interval_and_deficits_are_made_up);
  RUN (each_block_with_a_late_packet_is_a_starvation);
  RUN (the_rest_of_a_packet_can_be_late_by_itself);
  RUN (blocks_wait_for_a_gap_in_the_stream);
  RUN (rounds_are_never_early_and_at_most_a_round_late);
  RUN (a_round_with_too_many_bytes_is_divided);
  RUN (rounds_of_all_pacers_align_and_spread_over_their_parts);
  RUN (a_block_leaves_in_one_round);
  RUN (a_flush_forgets_the_queue_and_all_times);
  RUN (a_queue_is_full_after_a_second);
  RUN (a_change_of_mode_restarts_with_the_queue);
  RUN (a_change_of_rate_applies_from_the_next_packet);
  RUN (random_input_leaves_completely);
  weir_pacer_free (&pacer);
  return tap_done ();
}
