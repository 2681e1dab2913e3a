// SPDX-License-Identifier: LGPL-2.1-or-later
// A simulated server sends a live stream on a group and answers requests for its window; a client
// follows it.
#include "schedule/live.h"

#include <stdlib.h>

#include "run/clock.h"
#include "tap.h"

#define MS INT64_C (1000000)
#define STEP (2 * MS)
#define FRAME (40 * MS)
#define PER_FRAME 5 // packets
#define GOP 25      // frames
#define TRACKS 2
#define ANSWER_MAX 256
#define WINDOW 2000 // packets that the server keeps

static uint64_t seed = 88172645463325252;

static uint32_t
draw (uint32_t n)
{
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return (uint32_t) (seed % n);
}

// What the line does.
typedef struct {
  int64_t join_ns;    // until the group's packets come
  int64_t rtt_ns;     // of a request
  uint32_t loss;      // percent of the group's packets
  uint32_t swap;      // percent of them that overtake the one before
  int64_t restart_ns; // when the server begins anew
  int64_t pause_ns;   // when the client pauses, for 1 s
  int64_t move_ns;    // when the stream leaves the group, until the client asks where it is
} Line;

static struct {
  Line line;
  WeirLive live;
  int64_t now;
  uint32_t ssrc, first_seq;
  int64_t begin_ns;     // of the stream
  int64_t sent[TRACKS]; // packets of the stream
  int64_t answer_ns;    // 0: nothing is asked
  WeirFollowRange asked[8];
  size_t n_asked;
  bool newest;
  // What the client got.
  int64_t last[TRACKS], n[TRACKS], kept, streams;
  uint32_t wrong, anew, begun_elsewhere;
  int64_t first_ns;
} w;

// ---- the stream: packet N of track 0 is of frame N / PER_FRAME; track 1 has a packet a frame ----

static int64_t
n_due (uint32_t track)
{
  int64_t frames = (w.now - w.begin_ns) / FRAME + 1;

  return track == 0 ? frames * PER_FRAME : frames;
}

static int64_t
frame_of (uint32_t track, int64_t number)
{
  return track == 0 ? number / PER_FRAME : number;
}

static WeirRtp
rtp_of (uint32_t track, int64_t number)
{
  return (WeirRtp) { .seq = (uint16_t) (w.first_seq + number),
    .timestamp = (uint32_t) (1000 * track + (uint32_t) (frame_of (track, number) * 3600)),
    .ssrc = w.ssrc + track };
}

static void *
item_of (uint32_t track, int64_t number)
{
  w.kept++;
  return (void *) (uintptr_t) (((uint64_t) w.ssrc << 40) + (uint64_t) number * TRACKS + track + 1);
}

static void
put (uint32_t track, int64_t number, bool by_group)
{
  WeirRtp rtp = rtp_of (track, number);
  void *item;

  if (by_group ? !weir_live_heard (&w.live, track, &rtp, 1000, w.now)
               : !weir_live_answered (&w.live, track, &rtp, 1000, w.now))
    return;
  while (weir_live_drop (&w.live, &item))
    w.kept--;
  item = item_of (track, number);
  if (weir_live_put (&w.live, track, &rtp, by_group, w.now, item) < 0)
    w.kept--;
}

static void
send_all (void)
{
  for (uint32_t track = 0; track < TRACKS; track++) {
    int64_t to = n_due (track);

    while (w.sent[track] < to) {
      int64_t number = w.sent[track]++;
      bool swap = w.sent[track] < to && draw (100) < w.line.swap;

      if (w.now < w.line.join_ns || (w.line.move_ns > 0 && w.now >= w.line.move_ns))
        continue;
      if (swap)
        put (track, w.sent[track]++, true);
      if (draw (100) >= w.line.loss)
        put (track, number, true);
    }
  }
}

static void
answer_range (uint32_t track, int64_t from, int64_t n, uint32_t *left)
{
  for (int64_t i = from; i < from + n && *left > 0; i++) {
    if (i < 0 || i < w.sent[track] - WINDOW || i >= w.sent[track])
      continue;
    put (track, i, false);
    --*left;
  }
}

static void
answer (void)
{
  uint32_t left = ANSWER_MAX;
  int64_t key = (w.sent[0] - 1) / (PER_FRAME * GOP) * PER_FRAME * GOP;

  if (w.newest) {
    answer_range (0, key, ANSWER_MAX, &left);
    answer_range (1, w.sent[1] - 1, 1, &left);
    weir_live_answer_ends (&w.live);
  }
  for (size_t i = 0; i < w.n_asked; i++) {
    const WeirFollowRange *range = &w.asked[i];
    int64_t near = w.sent[range->track];
    int64_t from = near + (int16_t) (uint16_t) (range->from - (uint16_t) (w.first_seq + near));

    CHECK (range->from < range->to && range->to <= 65536);
    answer_range (range->track, from, range->to - range->from, &left);
  }
  w.answer_ns = 0;
}

static void
ask (void)
{
  w.newest = !w.live.answered;
  w.n_asked = w.newest ? 0 : weir_live_ask (&w.live, w.now, w.asked, 8, 192);
  if (w.newest || w.n_asked > 0)
    w.answer_ns = w.now + w.line.rtt_ns;
}

static void
take_all (uint32_t track)
{
  WeirFollowOut out;
  int64_t due;

  while (weir_live_take (&w.live, track, w.now, &out, &due)) {
    int64_t value = (int64_t) ((uintptr_t) out.item & ((UINT64_C (1) << 40) - 1)) - 1;
    int64_t number = value / TRACKS;

    w.kept--;
    w.wrong += value % TRACKS != track;
    if (out.stalled || w.n[track] == 0) {
      w.begun_elsewhere += track == 0 && number % (PER_FRAME * GOP) != 0;
      w.anew += w.n[track] > 0 && track == 0;
    } else {
      w.wrong += number != w.last[track] + 1 + out.lost;
    }
    if (w.first_ns == 0)
      w.first_ns = w.now;
    w.last[track] = number;
    w.n[track]++;
  }
}

static void
describe (void)
{
  WeirDescribedTime times[TRACKS];

  for (uint32_t i = 0; i < TRACKS; i++)
    times[i] = (WeirDescribedTime) { true, 1000 * i };
  weir_live_begin (&w.live, times, w.now);
  w.answer_ns = 0;
}

static void
begin_stream (void)
{
  w.ssrc++;
  w.first_seq = draw (65536);
  w.begin_ns = w.now;
  w.sent[0] = w.sent[1] = 0;
}

static void
run (Line line, int64_t arrival_ns, int64_t length_ns)
{
  WeirFollowSettings settings = { .clock_rate = { 90000, 90000 }, .slack_ns = 100 * MS };
  int64_t end, paused_ns = 0;

  memset (&w, 0, sizeof w);
  w.line = line;
  begin_stream ();
  for (; w.now < arrival_ns; w.now += STEP)
    ;
  w.sent[0] = n_due (0);
  w.sent[1] = n_due (1);
  w.line.join_ns += arrival_ns;
  w.line.move_ns += line.move_ns > 0 ? arrival_ns : 0;
  CHECK_INT (weir_live_init (&w.live, TRACKS, &settings), 0);
  describe ();
  for (end = arrival_ns + length_ns; w.now < end; w.now += STEP) {
    if (line.restart_ns > 0 && w.now == arrival_ns + line.restart_ns)
      begin_stream ();
    if (line.pause_ns > 0 && w.now == arrival_ns + line.pause_ns)
      paused_ns = w.now;
    send_all ();
    if (weir_live_is_stale (&w.live, w.now)) {
      w.line.move_ns = 0;
      describe ();
    }
    if (w.answer_ns == 0)
      ask ();
    else if (w.now >= w.answer_ns)
      answer ();
    if (paused_ns > 0 && w.now - paused_ns < 1000 * MS)
      continue;
    if (paused_ns > 0) {
      void *item;

      weir_live_restart (&w.live);
      while (weir_live_drop (&w.live, &item))
        w.kept--;
      describe ();
      paused_ns = 0;
      w.line.pause_ns = line.pause_ns = 0;
    }
    take_all (0);
    take_all (1);
  }
}

static void
end (void)
{
  void *item;

  weir_live_restart (&w.live);
  while (weir_live_drop (&w.live, &item))
    w.kept--;
  CHECK_INT (w.kept, 0);
  weir_live_clear (&w.live, NULL);
}

// Expects all packets from a keyframe on, each once.
static void
expect_all (int64_t length_ns)
{
  const WeirFollowStats *stats = &w.live.stats;

  CHECK_INT (w.wrong, 0);
  CHECK_INT (w.begun_elsewhere, 0);
  CHECK_INT (stats->lost, 0);
  CHECK (w.n[0] >= (length_ns / FRAME - 5) * PER_FRAME);
  CHECK_INT (stats->passed, (uint64_t) (w.n[0] + w.n[1]));
  end ();
}

static void
every_packet_comes_once_from_a_keyframe_on (void)
{
  for (int64_t arrival = 0; arrival < 2000 * MS; arrival += 26 * MS) {
    run ((Line) { .rtt_ns = 4 * MS, .join_ns = draw (60) * MS }, arrival, 3000 * MS);
    CHECK (w.first_ns - arrival <= 8 * MS);
    CHECK_INT (w.anew, 0);
    expect_all (3000 * MS);
  }
}

static void
a_group_that_is_joined_late_costs_only_unicast (void)
{
  for (int64_t join = 0; join < 3000 * MS; join += 130 * MS) {
    run ((Line) { .rtt_ns = 10 * MS, .join_ns = join }, draw (1000) * 2 * MS, 4000 * MS);
    CHECK_INT (w.anew, 0);
    expect_all (4000 * MS);
  }
}

static void
losses_and_reordering_are_repaired (void)
{
  for (uint32_t loss = 1; loss <= 40; loss += 3) {
    run ((Line) { .rtt_ns = 10 * MS, .loss = loss, .swap = 5 }, draw (1000) * 2 * MS, 6000 * MS);
    CHECK (w.live.stats.missed > 0 && w.live.stats.repaired == w.live.stats.missed);
    expect_all (6000 * MS);
  }
}

static void
what_does_not_come_in_time_is_given_up (void)
{
  // Answers come later than packets wait.
  run ((Line) { .rtt_ns = 300 * MS, .loss = 10 }, 500 * MS, 6000 * MS);
  CHECK_INT (w.wrong, 0);
  CHECK (w.live.stats.lost > 0);
  CHECK_INT (w.live.stats.passed, w.live.stats.in_time + w.live.stats.late + w.live.stats.lost);
  end ();
}

static void
a_server_that_begins_anew_is_followed (void)
{
  for (int i = 0; i < 20; i++) {
    run ((Line) { .rtt_ns = 4 * MS, .restart_ns = 2000 * MS + draw (500) * 2 * MS },
        draw (1000) * 2 * MS, 6000 * MS);
    CHECK_INT (w.wrong, 0);
    CHECK_INT (w.begun_elsewhere, 0);
    CHECK_INT (w.anew, 1);
    CHECK_INT (w.live.stats.lost, 0);
    end ();
  }
}

static void
a_client_that_has_paused_goes_on_at_a_keyframe (void)
{
  run ((Line) { .rtt_ns = 4 * MS, .pause_ns = 2000 * MS }, 300 * MS, 6000 * MS);
  CHECK_INT (w.wrong, 0);
  CHECK_INT (w.begun_elsewhere, 0);
  CHECK_INT (w.anew, 1);
  CHECK_INT (w.live.stats.lost, 0);
  end ();
}

static void
packets_are_kept_up_to_a_bound (void)
{
  WeirFollowSettings settings = { .clock_rate = { 90000 } };
  WeirDescribedTime times[WEIR_DESCRIPTION_TRACKS_MAX] = { { 0 } };
  int refused = 0;
  WeirLive live;
  void *item;

  CHECK_INT (weir_live_init (&live, 1, &settings), 0);
  weir_live_begin (&live, times, 0);
  weir_live_answer_ends (&live);
  for (uint32_t i = 0; i < 3 * WEIR_LIVE_PACKETS; i++) {
    WeirRtp rtp = { .seq = (uint16_t) i, .ssrc = 1 };

    while (weir_live_drop (&live, &item))
      ;
    if (weir_live_heard (&live, 0, &rtp, 100, MS))
      refused += weir_live_put (&live, 0, &rtp, true, MS, NULL) < 0;
  }
  CHECK_INT (refused, 2 * WEIR_LIVE_PACKETS);
  weir_live_clear (&live, NULL);
  settings.clock_rate[0] = 0;
  CHECK (weir_live_init (&live, 1, &settings) < 0);
}

static void
a_stream_that_leaves_its_group_is_found (void)
{
  run ((Line) { .rtt_ns = 4 * MS, .move_ns = 2000 * MS }, 300 * MS, 6000 * MS);
  CHECK_INT (w.anew, 0);
  CHECK (w.live.stats.group_bytes > 4 * w.live.stats.unicast_bytes / 3);
  expect_all (6000 * MS);
}

static void
a_group_that_moves_before_it_brings_anything_is_found (void)
{
  run ((Line) { .rtt_ns = 4 * MS, .move_ns = MS }, 300 * MS, 8000 * MS);
  CHECK_INT (w.anew, 0);
  CHECK (w.live.stats.group_bytes > 0);
  expect_all (8000 * MS);
}

// The client plays what has just been sent, so it has no more time than its slack of 100 ms.
static void
what_a_group_that_was_left_did_not_bring_comes_in_time (void)
{
  for (int64_t move = 1000 * MS; move < 3000 * MS; move += 34 * MS) {
    run ((Line) { .rtt_ns = 10 * MS, .move_ns = move }, 1000 * MS, 5000 * MS);
    CHECK_INT (w.live.stats.late, 0);
    expect_all (5000 * MS);
  }
}

int
main (void)
{
  RUN (every_packet_comes_once_from_a_keyframe_on);
  RUN (a_group_that_is_joined_late_costs_only_unicast);
  RUN (losses_and_reordering_are_repaired);
  RUN (what_does_not_come_in_time_is_given_up);
  RUN (a_server_that_begins_anew_is_followed);
  RUN (a_client_that_has_paused_goes_on_at_a_keyframe);
  RUN (a_stream_that_leaves_its_group_is_found);
  RUN (a_group_that_moves_before_it_brings_anything_is_found);
  RUN (what_a_group_that_was_left_did_not_bring_comes_in_time);
  RUN (packets_are_kept_up_to_a_bound);
  return tap_done ();
}
