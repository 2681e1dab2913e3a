// SPDX-License-Identifier: LGPL-2.1-or-later
// A simulated server sends a title by each scheme, in rounds of 1 ms, and answers requests; a
// client follows its description.
#include "schedule/follow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "run/clock.h"
#include "schedule/scheme.h"
#include "tap.h"

#define MS INT64_C (1000000)
#define FRAME (40 * MS)
#define FRAMES 500
#define VIDEO_MAX 4096
#define AUDIO ((uint32_t) (FRAMES * INT64_C (40) * 48 / 1024))
#define SLACK (40 * MS)
#define CHUNK_MAX 128 // packets in an answer

static uint64_t seed = 88172645463325252;

static uint32_t
draw (uint32_t from, uint32_t to)
{
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return from + (uint32_t) (seed % (to - from + 1));
}

// ---- the title: video with reordered frames, and audio ----

typedef struct {
  uint32_t timestamp, frame;
  bool marker;
} Packet;

static Packet video[VIDEO_MAX], audio[AUDIO];
static uint32_t n_video;

static void
make_title (void)
{
  static const int pts[4] = { 0, 3, 1, 2 }; // I P B B

  for (uint32_t frame = 0; frame < FRAMES; frame++) {
    uint32_t n = frame % 48 == 0 ? 20 : frame % 4 == 1 ? 6 : 2;

    for (uint32_t i = 0; i < n; i++)
      video[n_video++] =
          (Packet) { (frame / 4 * 4 + (uint32_t) pts[frame % 4] + 1) * 3600, frame, i == n - 1 };
  }
  for (uint32_t i = 0; i < AUDIO; i++)
    audio[i] = (Packet) { i * 1024, (uint32_t) (i * INT64_C (1024) * 1000 / 48 / 40000), true };
}

static const Packet *
packet_of (uint32_t track, uint32_t number)
{
  return track == 0 ? &video[number] : &audio[number];
}

static uint32_t
n_packets (uint32_t track)
{
  return track == 0 ? n_video : AUDIO;
}

static WeirPacketRange
packets_of (uint32_t track, uint32_t from, uint32_t to)
{
  WeirPacketRange range = { 0, 0 };

  while (range.from < n_packets (track) && packet_of (track, range.from)->frame < from)
    range.from++;
  range.to = range.from;
  while (range.to < n_packets (track) && packet_of (track, range.to)->frame < to)
    range.to++;
  return range.from < range.to ? range : (WeirPacketRange) { 0, 0 };
}

// ---- the server and the client ----

typedef struct {
  uint32_t loss;      // percent of packets on groups
  int64_t rtt_ns;     // of a request
  int64_t join_ns;    // until a group's packets come
  int64_t down_ns[2]; // the server is not there
  bool no_multicast;  // no group brings anything
  int64_t restart_ns; // the server begins anew; 0: it does not
  uint32_t max_groups;
} Line;

static struct {
  Line line;
  WeirGroupPool pool;
  WeirScheme scheme;
  WeirDescription description;
  WeirFollow follow;
  int64_t now;
  int64_t arrived_ns[WEIR_DESCRIPTION_RECEIVES_MAX]; // when a group's packets begin to come
  WeirFollowRange asked[16];
  size_t n_asked;
  int64_t answer_ns;
  uint32_t next[2];
  uint32_t wrong, early, gaps;
  WeirFollowStats stats;
} w;

static WeirRtp
rtp_of (uint32_t track, uint32_t number)
{
  const Packet *packet = packet_of (track, number);

  return (WeirRtp) { .marker = packet->marker,
    .seq = (uint16_t) number,
    .timestamp = packet->timestamp,
    .ssrc = 1000 + track };
}

static void *
item_of (uint32_t track, uint32_t number)
{
  return (void *) (uintptr_t) (track * 1000000 + number + 1);
}

static void
send_packet (const WeirChannel *channel, uint32_t track, uint32_t number)
{
  for (uint32_t i = 0; i < w.description.n_receives; i++) {
    WeirRtp rtp = rtp_of (track, number);
    uint32_t got;

    if (w.follow.receives[i].state != WEIR_FOLLOW_JOINED || w.now < w.arrived_ns[i]
        || w.description.receives[i].channel != channel->number || w.line.no_multicast
        || draw (1, 100) <= w.line.loss)
      continue;
    if (!weir_follow_heard (&w.follow, i, track, &rtp, 1000, w.now, &got))
      continue;
    w.wrong += got != number;
    CHECK_INT (weir_follow_put (&w.follow, track, got, &rtp, true, w.now, item_of (track, got)), 0);
  }
}

static void
send_frames (void *data, const WeirChannel *channel, uint32_t from, uint32_t to, int64_t at_ns)
{
  for (uint32_t track = 0; track < 2; track++) {
    WeirPacketRange range = packets_of (track, from, to);

    for (uint32_t i = range.from; i < range.to; i++)
      send_packet (channel, track, i);
  }
}

static bool
is_down (void)
{
  return w.now >= w.line.down_ns[0] && w.now < w.line.down_ns[1];
}

static void
answer (void)
{
  for (size_t i = 0; i < w.n_asked; i++) {
    const WeirFollowRange *range = &w.asked[i];

    for (uint32_t number = range->from; number < range->to; number++) {
      WeirRtp rtp = rtp_of (range->track, number);

      if (weir_follow_answered (&w.follow, range->track, number, &rtp, 1000))
        CHECK_INT (weir_follow_put (&w.follow, range->track, number, &rtp, false, w.now,
                       item_of (range->track, number)),
            0);
    }
  }
  w.n_asked = 0;
  weir_follow_ask_again (&w.follow);
}

static void
take_packets (uint32_t track)
{
  WeirFollowOut out;
  int64_t due;

  while (weir_follow_take (&w.follow, track, w.now, &out, &due)) {
    w.wrong += out.item != item_of (track, out.number);
    w.gaps += out.number != w.next[track] + out.lost;
    w.next[track] = out.number + 1;
    w.early += w.now < out.play_ns + packet_of (track, out.number)->frame * FRAME;
  }
  CHECK (due > w.now);
}

static void
step (uint64_t round)
{
  uint32_t number;

  while (weir_follow_leave (&w.follow, w.now, &number))
    w.arrived_ns[number] = WEIR_NEVER;
  while (weir_follow_join (&w.follow, w.now, &number))
    w.arrived_ns[number] = w.now + w.line.join_ns;
  if (!is_down ())
    weir_transmission_due (&w.scheme.transmission, w.now, w.now + MS, round, send_frames, NULL);
  if (w.n_asked > 0 && w.now >= w.answer_ns && !is_down ())
    answer ();
  else if (w.n_asked > 0 && w.now >= w.answer_ns)
    w.follow.unreachable = true;
  if (w.n_asked == 0) {
    w.n_asked = weir_follow_ask (&w.follow, w.now, w.asked, 16, CHUNK_MAX);
    w.follow.unreachable = w.follow.unreachable && w.n_asked > 0;
    w.answer_ns = w.now + w.line.rtt_ns;
  }
  take_packets (0);
  take_packets (1);
}

static void
describe_send (const WeirChannel *channel, const WeirWork *work)
{
  WeirDescribedSend *send = &w.description.sends[w.description.n_sends++];

  *send = (WeirDescribedSend) { .channel = channel->number,
    .from = work->from,
    .to = work->to,
    .repeat = work->repeat,
    .start_ns = work->start_ns,
    .period_ns = weir_work_cycle_ns (work, FRAME),
    .packets = { packets_of (0, work->from, work->to), packets_of (1, work->from, work->to) } };
}

static void
describe (const WeirReception *reception)
{
  WeirDescription *d = &w.description;

  *d = (WeirDescription) { .id = "a",
    .scheme = "x",
    .now_ns = w.now,
    .play_ns = reception->play_ns,
    .n_frames = FRAMES,
    .frame_ns = FRAME,
    .n_tracks = 2,
    .n_packets = { n_video, AUDIO } };
  for (size_t i = 0; i < w.scheme.transmission.n_channels; i++) {
    const WeirChannel *channel = &w.scheme.transmission.channels[i];

    for (size_t j = 0; channel->type == WEIR_CHANNEL_MULTICAST && j < channel->n_works; j++)
      describe_send (channel, &channel->works[j]);
  }
  for (size_t i = 0; i < reception->n_items; i++) {
    const WeirReceptionItem *item = &reception->items[i];

    if (item->type != WEIR_CHANNEL_MULTICAST)
      continue;
    d->receives[d->n_receives++] = (WeirDescribedReceive) { .channel = item->number,
      .from = item->from,
      .to = item->to,
      .join_ns = item->join_ns,
      .leave_ns = item->leave_ns,
      .packets = { packets_of (0, item->from, item->to), packets_of (1, item->from, item->to) } };
  }
}

// The server is another one now, and the client has noticed it.
static void
restart (const WeirSchemeConfig *config)
{
  WeirDescription *before = malloc (sizeof *before);
  char why[WEIR_SCHEME_WHY];
  WeirReception reception;

  *before = w.description;
  w.follow.description = before;
  weir_scheme_free (&w.scheme, w.now);
  weir_group_pool_free (&w.pool);
  CHECK_INT (weir_group_pool_init (&w.pool, 64), 0);
  CHECK_INT (weir_scheme_init (&w.scheme, config, FRAMES, FRAME, &w.pool, w.now, why), 0);
  CHECK_INT (weir_scheme_admit (&w.scheme, w.now, &reception, why), 0);
  describe (&reception);
  CHECK_INT (weir_follow_resume (&w.follow, &w.description, w.now), 0);
  CHECK_INT (w.follow.stats.groups, 0);
  free (before);
}

// One client of a scheme, which comes `after_ns` after another one.
static void
run (WeirSchemeKind kind, int64_t after_ns, const Line *line)
{
  const WeirSchemeConfig config = { .kind = kind, .first = 25, .threshold = 200 };
  const WeirFollowSettings settings = { .clock_rate = { 90000, 48000 },
    .slack_ns = SLACK,
    .max_groups = line->max_groups > 0 ? line->max_groups : 64 };
  char why[WEIR_SCHEME_WHY];
  WeirReception reception;

  memset (&w, 0, sizeof w);
  w.line = *line;
  w.now = 1000 * MS;
  CHECK_INT (weir_group_pool_init (&w.pool, 64), 0);
  CHECK_INT (weir_scheme_init (&w.scheme, &config, FRAMES, FRAME, &w.pool, w.now, why), 0);
  CHECK_INT (weir_scheme_admit (&w.scheme, w.now, &reception, why), 0);
  w.now += after_ns;
  CHECK_INT (weir_scheme_admit (&w.scheme, w.now, &reception, why), 0);
  describe (&reception);
  CHECK_INT (weir_follow_init (&w.follow, &w.description, &settings, w.now), 0);
  for (uint64_t round = 0; round < 90000; round++) {
    step (round);
    if (line->restart_ns > 0 && w.now == line->restart_ns)
      restart (&config);
    if (weir_follow_ended (&w.follow, 0) && weir_follow_ended (&w.follow, 1))
      break;
    w.now += MS;
  }
  CHECK (weir_follow_ended (&w.follow, 0) && weir_follow_ended (&w.follow, 1));
  CHECK_INT (w.wrong, 0);
  CHECK_INT (w.gaps, 0);
  CHECK_INT (w.early, 0);
  CHECK_INT (w.follow.stats.passed, n_video + AUDIO);
  CHECK_INT (
      w.follow.stats.in_time + w.follow.stats.late + w.follow.stats.lost, w.follow.stats.passed);
  w.stats = w.follow.stats;
  weir_follow_clear (&w.follow, NULL);
  weir_scheme_free (&w.scheme, w.now);
  weir_group_pool_free (&w.pool);
}

static const WeirSchemeKind kinds[] = { WEIR_SCHEME_GDB, WEIR_SCHEME_GREEDY, WEIR_SCHEME_SKYSCRAPER,
  WEIR_SCHEME_STAGGERED, WEIR_SCHEME_BATCHING, WEIR_SCHEME_PATCHING };
#define N_KINDS (sizeof kinds / sizeof kinds[0])

// Runs four clients, and returns the sums of their counts.
static WeirFollowStats
run_some (WeirSchemeKind kind, const Line *line)
{
  WeirFollowStats sum = { 0 };

  for (int i = 0; i < 4; i++) {
    // At least 100 ms before a broadcast begins, so that groups can be joined in time.
    int64_t after_ns = (draw (0, 7) * 1000 + draw (0, 900)) * MS;

    run (kind, after_ns, line);
    sum.passed += w.stats.passed;
    sum.lost += w.stats.lost;
    sum.late += w.stats.late;
    sum.missed += w.stats.missed;
    sum.repaired += w.stats.repaired;
    sum.duplicates += w.stats.duplicates;
    sum.unicast_bytes += w.stats.unicast_bytes;
    sum.stalls += w.stats.stalls;
    sum.groups_max += w.stats.groups_max;
    if (!tap_ok) {
      printf ("# %s, %lld ms after another: %llu lost, %llu late, %llu missed, %llu repaired\n",
          weir_scheme_name (kind), (long long) (after_ns / MS), (unsigned long long) w.stats.lost,
          (unsigned long long) w.stats.late, (unsigned long long) w.stats.missed,
          (unsigned long long) w.stats.repaired);
      break;
    }
  }
  return sum;
}

static void
every_packet_is_in_time_without_losses (void)
{
  const Line line = { .rtt_ns = 5 * MS, .join_ns = 20 * MS };

  for (size_t i = 0; i < N_KINDS; i++) {
    WeirFollowStats sum = run_some (kinds[i], &line);

    CHECK_INT (sum.lost + sum.late + sum.stalls, 0);
    if (kinds[i] == WEIR_SCHEME_PATCHING)
      continue;
    CHECK_INT (sum.missed, 0);
    CHECK_INT (sum.unicast_bytes, 0);
  }
}

static void
a_fifth_of_single_losses_is_repaired (void)
{
  const Line line = { .rtt_ns = 5 * MS, .join_ns = 20 * MS, .loss = 20 };

  for (size_t i = 0; i < N_KINDS; i++) {
    WeirFollowStats sum = run_some (kinds[i], &line);

    CHECK_INT (sum.lost, 0);
    CHECK (sum.late * 200 < sum.passed);
    CHECK (sum.missed > 0);
    CHECK_INT (sum.repaired, sum.missed);
    if (kinds[i] != WEIR_SCHEME_PATCHING)
      CHECK (sum.unicast_bytes / 1000 * 4 < sum.passed);
  }
}

static void
groups_that_come_late_are_joined_earlier (void)
{
  const Line line = { .rtt_ns = 5 * MS, .join_ns = 400 * MS };
  WeirFollowStats sum = run_some (WEIR_SCHEME_GDB, &line);

  CHECK_INT (sum.lost, 0);
  CHECK (w.stats.join_latency_ns >= 400 * MS && w.stats.join_latency_ns <= 440 * MS);
  // The first receptions of each client miss their beginning.
  CHECK (sum.missed > 0 && sum.missed < sum.passed / 8);
}

static void
without_groups_all_comes_by_unicast (void)
{
  const Line line = { .rtt_ns = 5 * MS, .no_multicast = true };

  for (size_t i = 0; i < N_KINDS; i++) {
    WeirFollowStats sum = run_some (kinds[i], &line);

    CHECK_INT (sum.lost, 0);
    CHECK_INT (sum.unicast_bytes, sum.passed * 1000);
  }
}

static void
groups_beyond_the_limit_are_not_joined (void)
{
  const Line line = { .rtt_ns = 5 * MS, .join_ns = 20 * MS, .max_groups = 1 };
  WeirFollowStats sum = run_some (WEIR_SCHEME_GDB, &line);

  CHECK_INT (sum.groups_max, 4);
  CHECK_INT (sum.lost + sum.late, 0);
  CHECK (sum.unicast_bytes > 0);
}

static void
a_server_that_is_gone_for_a_while_costs_no_packets (void)
{
  const Line line = { .rtt_ns = 5 * MS, .join_ns = 20 * MS, .down_ns = { 9000 * MS, 11000 * MS } };

  for (size_t i = 0; i < N_KINDS; i++) {
    WeirFollowStats sum = run_some (kinds[i], &line);

    CHECK_INT (sum.lost, 0);
    CHECK (sum.stalls <= 2 * 4);
  }
}

static void
a_slow_answer_moves_only_the_start (void)
{
  const Line line = { .rtt_ns = 150 * MS, .join_ns = 20 * MS };
  WeirFollowStats sum = run_some (WEIR_SCHEME_PATCHING, &line);

  CHECK_INT (sum.lost + sum.stalls, 0);
  CHECK (sum.late > 0 && sum.late <= 3 * 4); // the first packets of each client
}

// ---- hostile packets ----

static void
after_a_restart_groups_bring_the_rest (void)
{
  // New transmissions of the whole title are behind the client.
  static const WeirSchemeKind periodic[] = { WEIR_SCHEME_GDB, WEIR_SCHEME_GREEDY,
    WEIR_SCHEME_SKYSCRAPER };

  for (size_t i = 0; i < sizeof periodic / sizeof periodic[0]; i++) {
    for (int64_t at = 1500; at < 20000; at += 4750) {
      Line line = { .rtt_ns = 5 * MS, .join_ns = 20 * MS, .restart_ns = (2000 + at) * MS };
      uint64_t whole = (uint64_t) (n_video + AUDIO) * 1000;

      run (periodic[i], 1000 * MS, &line);
      CHECK_INT (w.stats.lost, 0);
      CHECK_INT (w.stats.stalls, 0);
      // What no group brings in time is by unicast: what the client has missed of the new ones.
      CHECK (w.stats.unicast_bytes < whole / 2);
      CHECK (w.stats.group_bytes > whole / 2);
    }
  }
}

static void
a_title_that_waited_for_the_server_goes_on_with_groups (void)
{
  const Line line = { .rtt_ns = 5 * MS,
    .join_ns = 20 * MS,
    .down_ns = { 4000 * MS, 40100 * MS },
    .restart_ns = 40000 * MS };
  uint64_t whole = (uint64_t) (n_video + AUDIO) * 1000;

  run (WEIR_SCHEME_SKYSCRAPER, 1000 * MS, &line);
  CHECK_INT (w.stats.lost, 0);
  CHECK (w.stats.stalled_ns > 30000 * MS);
  CHECK (w.stats.unicast_bytes < whole / 2);
}

static void
packets_of_others_are_refused (void)
{
  const WeirFollowSettings settings = {
    .clock_rate = { 90000, 48000 }, .slack_ns = SLACK, .max_groups = 1
  };
  WeirRtp rtp = rtp_of (0, 0);
  uint32_t number, receive;

  memset (&w, 0, sizeof w);
  w.description = (WeirDescription) { .n_frames = FRAMES,
    .frame_ns = FRAME,
    .n_tracks = 2,
    .n_packets = { n_video, AUDIO },
    .n_receives = 1 };
  w.description.receives[0] = (WeirDescribedReceive) {
    .from = 100, .to = 200, .leave_ns = 4000 * MS, .packets = { packets_of (0, 100, 200) }
  };
  CHECK_INT (weir_follow_init (&w.follow, &w.description, &settings, 0), 0);
  CHECK (weir_follow_join (&w.follow, 0, &receive));
  // Another time, an audio packet, a number outside of the receive.
  CHECK (!weir_follow_heard (&w.follow, 0, 0, &rtp, 100, 0, &number));
  rtp = rtp_of (1, 188);
  CHECK (!weir_follow_heard (&w.follow, 0, 1, &rtp, 100, 0, &number));
  rtp = rtp_of (0, packets_of (0, 100, 200).from);
  rtp.seq--;
  CHECK (!weir_follow_heard (&w.follow, 0, 0, &rtp, 100, 0, &number));
  CHECK_INT (w.follow.stats.strays, 3);
  rtp.seq++;
  CHECK (weir_follow_heard (&w.follow, 0, 0, &rtp, 100, 0, &number));
  CHECK_INT (number, packets_of (0, 100, 200).from);
  CHECK_INT (weir_follow_put (&w.follow, 0, number, &rtp, true, 0, NULL), 0);
  CHECK_INT (weir_follow_put (&w.follow, 0, number, &rtp, true, 0, NULL), -EEXIST);
  CHECK (!weir_follow_heard (&w.follow, 0, 0, &rtp, 100, 0, &number));
  CHECK_INT (w.follow.stats.duplicates, 1);
  // Another sender; an answer whose number is another one, or not in the title.
  rtp.seq++;
  rtp.ssrc++;
  CHECK (!weir_follow_heard (&w.follow, 0, 0, &rtp, 100, 0, &number));
  rtp.ssrc--;
  CHECK (weir_follow_answered (&w.follow, 0, number + 1, &rtp, 100));
  CHECK (!weir_follow_answered (&w.follow, 0, number + 2, &rtp, 100));
  CHECK (!weir_follow_answered (&w.follow, 0, number + 1 + 65536, &rtp, 100));
  weir_follow_clear (&w.follow, NULL);
}

int
main (void)
{
  make_title ();
  RUN (every_packet_is_in_time_without_losses);
  RUN (a_fifth_of_single_losses_is_repaired);
  RUN (groups_that_come_late_are_joined_earlier);
  RUN (without_groups_all_comes_by_unicast);
  RUN (groups_beyond_the_limit_are_not_joined);
  RUN (a_server_that_is_gone_for_a_while_costs_no_packets);
  RUN (a_slow_answer_moves_only_the_start);
  RUN (after_a_restart_groups_bring_the_rest);
  RUN (a_title_that_waited_for_the_server_goes_on_with_groups);
  RUN (packets_of_others_are_refused);
  return tap_done ();
}
