// SPDX-License-Identifier: LGPL-2.1-or-later
#include "schedule/scheme.h"

#include <errno.h>
#include <stdlib.h>

#include "tap.h"

#define TICK 1000000 // ns; time passes in ticks
#define TICKS 4      // in a frame
#define FRAME (TICKS * TICK)
#define TITLES 3
#define CLIENTS_MAX 4096
#define GROUPS_MAX 64

static uint64_t seed = 88172645463325252;

// Returns a random number from `from` to `to`.
static uint32_t
draw (uint32_t from, uint32_t to)
{
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return from + (uint32_t) (seed % (to - from + 1));
}

// ---- brute force: a server, and clients that note when each frame comes ----

typedef struct {
  WeirReception reception;
  int title;
  uint32_t n_got, at_once, buffer;
  uint8_t *got;
} Client;

static struct {
  WeirGroupPool pool;
  WeirScheme schemes[TITLES];
  uint32_t n_frames[TITLES];
  bool begun[TITLES];
  Client *clients[CLIENTS_MAX];
  size_t n_clients;
  int64_t now;
  uint64_t used[GROUPS_MAX]; // time + TICK of the last frame sent on a group
  int title;                 // that sends
  uint32_t late, twice, outside, n_sent;
} world;

static void
give (Client *client, const WeirChannel *channel, uint32_t frame)
{
  for (size_t i = 0; i < client->reception.n_items; i++) {
    const WeirReceptionItem *item = &client->reception.items[i];
    if (item->type != channel->type || item->number != channel->number || frame < item->from
        || frame >= item->to || world.now < item->join_ns || world.now >= item->leave_ns)
      continue;
    client->n_got += !client->got[frame];
    client->got[frame] = true;
    world.late += world.now > client->reception.play_ns + (int64_t) frame * FRAME;
  }
}

static void
send_frames (void *data, const WeirChannel *channel, uint32_t from, uint32_t to, int64_t at_ns)
{
  (void) at_ns;
  (void) data;
  world.n_sent += to - from;
  if (channel->type == WEIR_CHANNEL_MULTICAST) {
    if (channel->number >= world.pool.n_groups) {
      world.outside++;
      return;
    }
    // A group carries one frame in the time of a frame.
    if (world.used[channel->number] + FRAME > (uint64_t) world.now + TICK)
      world.twice++;
    world.used[channel->number] = (uint64_t) world.now + TICK;
  }
  for (size_t i = 0; i < world.n_clients; i++) {
    if (world.clients[i]->title == world.title) {
      for (uint32_t frame = from; frame < to; frame++)
        give (world.clients[i], channel, frame);
    }
  }
}

static void
begin_world (uint32_t n_groups)
{
  memset (&world, 0, sizeof world);
  world.now = FRAME; // no group has been used for this long
  CHECK_INT (weir_group_pool_init (&world.pool, n_groups), 0);
}

static int
begin_title (int title, const WeirSchemeConfig *config, uint32_t n_frames, char *why)
{
  int failed = weir_scheme_init (
      &world.schemes[title], config, n_frames, FRAME, &world.pool, world.now, why);

  world.n_frames[title] = n_frames;
  world.begun[title] = failed == 0;
  return failed;
}

// Returns false if the client was refused.
static bool
arrive (int title)
{
  Client *client = calloc (1, sizeof *client);
  char why[WEIR_SCHEME_WHY] = "";

  client->title = title;
  if (weir_scheme_admit (&world.schemes[title], world.now, &client->reception, why) < 0) {
    CHECK (why[0] != '\0');
    free (client);
    return false;
  }
  client->got = calloc (1, world.n_frames[title]);
  world.clients[world.n_clients++] = client;
  return true;
}

static void
measure (Client *client)
{
  uint32_t at_once = 0;
  int64_t played = (world.now + TICK - client->reception.play_ns) / FRAME;

  for (size_t i = 0; i < client->reception.n_items; i++)
    at_once += client->reception.items[i].join_ns <= world.now
               && world.now < client->reception.items[i].leave_ns;
  if (at_once > client->at_once)
    client->at_once = at_once;
  if (played < 0)
    played = 0;
  if (client->n_got > played && client->n_got - played > client->buffer)
    client->buffer = (uint32_t) (client->n_got - played);
}

static void
step (void)
{
  for (world.title = 0; world.title < TITLES; world.title++) {
    WeirScheme *scheme = &world.schemes[world.title];
    if (!world.begun[world.title])
      continue;
    weir_transmission_due (&scheme->transmission, world.now, world.now + TICK,
        (uint64_t) (world.now / TICK), send_frames, NULL);
    weir_scheme_advance (scheme, world.now + TICK);
  }
  for (size_t i = 0; i < world.n_clients; i++)
    measure (world.clients[i]);
  world.now += TICK;
}

static void
end_world (void)
{
  for (size_t i = 0; i < world.n_clients; i++) {
    Client *client = world.clients[i];
    const WeirReceptionNeeds needs = weir_reception_needs (&client->reception, FRAME);
    CHECK_INT (client->n_got, world.n_frames[client->title]);
    CHECK_INT (needs.at_once, client->at_once);
    // A frame counts when its first packet comes here, and when its last one has come there.
    CHECK (needs.buffer <= client->buffer && client->buffer <= needs.buffer + 1 + needs.at_once);
    free (client->got);
    free (client);
  }
  CHECK_INT (world.late, 0);
  CHECK_INT (world.twice, 0);
  CHECK_INT (world.outside, 0);
  for (int i = 0; i < TITLES; i++) {
    if (world.begun[i])
      weir_scheme_free (&world.schemes[i], world.now);
  }
  // A group may be needed for one frame after a broadcast has ended.
  CHECK_INT (weir_group_pool_count_free (&world.pool, world.now + FRAME), world.pool.n_groups);
  weir_group_pool_free (&world.pool);
}

static uint32_t
longest_period (void)
{
  uint64_t longest = 0;

  for (int i = 0; i < world.schemes[0].n_segments; i++) {
    if (world.schemes[0].segments[i].period > longest)
      longest = world.schemes[0].segments[i].period;
  }
  return (uint32_t) longest;
}

// One client for each frame of the longest period, some of them within the time of the frame.
static void
every_arrival (WeirSchemeConfig config, uint32_t n_frames, uint32_t at_once)
{
  char why[WEIR_SCHEME_WHY];
  uint32_t arrivals;

  begin_world (GROUPS_MAX);
  world.now += (int64_t) draw (0, 1000) * TICK;
  CHECK_INT (begin_title (0, &config, n_frames, why), 0);
  arrivals = longest_period () + 1;
  for (uint32_t i = 0; i < arrivals * TICKS; i++) {
    if (i % TICKS == i / TICKS % 7 % TICKS) {
      CHECK (arrive (0));
      CHECK (world.clients[world.n_clients - 1]->reception.play_ns
             <= world.now + (int64_t) config.first * FRAME);
    }
    step ();
  }
  for (uint32_t i = 0; i < (n_frames + config.first + 1) * TICKS; i++)
    step ();
  for (size_t i = 0; i < world.n_clients && at_once > 0; i++)
    CHECK (world.clients[i]->at_once <= at_once);
  end_world ();
}

static void
gdb_gives_every_client_every_frame_in_time (void)
{
  for (int i = 0; i < 20; i++) {
    const uint32_t n_frames = draw (1, 300);
    const uint32_t first = draw (1, n_frames < 40 ? n_frames : 40);
    every_arrival (
        (WeirSchemeConfig) { .kind = WEIR_SCHEME_GDB, .first = first, .delay = draw (0, n_frames) },
        n_frames, 0);
  }
}

static void
greedy_does_so_within_the_groups_that_a_client_receives (void)
{
  for (uint32_t i = 0; i < 20; i++) {
    const uint32_t n_frames = draw (1, 300), at_once = 2 + i % 3;
    const uint32_t first = draw (1 + n_frames / 40, n_frames < 40 ? n_frames : 40);
    every_arrival ((WeirSchemeConfig) { .kind = WEIR_SCHEME_GREEDY,
                       .first = first,
                       .at_once = at_once,
                       .delay = draw (0, n_frames) },
        n_frames, at_once);
  }
}

static void
skyscraper_does_so_with_two_groups (void)
{
  for (int i = 0; i < 20; i++) {
    const uint32_t n_frames = draw (1, 300);
    const uint32_t first = draw (1 + n_frames / 50, n_frames < 40 ? n_frames : 40);
    const uint32_t longest = i % 2 ? first * 5 : 0;
    every_arrival (
        (WeirSchemeConfig) { .kind = WEIR_SCHEME_SKYSCRAPER, .first = first, .longest = longest },
        n_frames, 2);
  }
}

static void
staggered_does_so_with_one (void)
{
  for (int i = 0; i < 20; i++) {
    const uint32_t n_frames = draw (1, 300);
    const uint32_t first = draw (1 + n_frames / 20, n_frames);
    every_arrival (
        (WeirSchemeConfig) { .kind = WEIR_SCHEME_STAGGERED, .first = first }, n_frames, 1);
  }
}

static void
batching_and_patching_do_so (void)
{
  for (int i = 0; i < 40; i++) {
    const uint32_t n_frames = draw (1, 200);
    const uint32_t often = draw (1, 300);
    const WeirSchemeConfig config = {
      .kind = i % 2 ? WEIR_SCHEME_BATCHING : WEIR_SCHEME_PATCHING,
      .first = draw (1, n_frames),
      .threshold = draw (0, n_frames),
    };
    char why[WEIR_SCHEME_WHY];
    begin_world (draw (1, 8));
    CHECK_INT (begin_title (0, &config, n_frames, why), 0);
    while (world.now < INT64_C (3000) * TICK) {
      if (draw (0, often) == 0)
        arrive (0);
      step ();
    }
    while (world.now < INT64_C (3000) * TICK + INT64_C (500) * FRAME)
      step ();
    end_world ();
  }
}

static void
titles_share_a_pool_and_never_a_group (void)
{
  uint32_t refused = 0, failed = 0, switched = 0;

  for (int i = 0; i < 60; i++) {
    char why[WEIR_SCHEME_WHY];
    begin_world (draw (1, 24));
    for (int title = 0; title < TITLES; title++) {
      const uint32_t n_frames = draw (20, 200);
      const WeirSchemeConfig config = {
        .kind = (WeirSchemeKind) draw (WEIR_SCHEME_GDB, WEIR_SCHEME_AUTO),
        .first = draw (1 + n_frames / 30, n_frames / 2),
        .at_once = draw (2, 4),
        .cached = draw (0, 20),
        .delay = draw (0, 20),
      };
      why[0] = '\0';
      failed += begin_title (title, &config, n_frames, why) < 0;
      CHECK (world.begun[title] || why[0] != '\0');
    }
    // The arrival rate changes, so AUTO does, too.
    for (uint32_t often = draw (1, 200); world.now < INT64_C (4000) * TICK; step ()) {
      const int title = (int) draw (0, TITLES - 1);
      if (world.now % (1000 * TICK) == 0)
        often = draw (1, 200);
      if (world.begun[title] && draw (0, often) == 0)
        refused += !arrive (title);
      switched += world.begun[title] && world.schemes[title].config.kind == WEIR_SCHEME_AUTO
                  && world.schemes[title].broadcasting;
    }
    while (world.now < INT64_C (4000) * TICK + INT64_C (500) * FRAME)
      step ();
    end_world ();
  }
  CHECK (refused > 0 && failed > 0 && switched > 0); // all of it was tried
}

// ---- parts ----

static void
segments_are_those_of_the_papers (void)
{
  static const struct {
    WeirCut cut;
    uint32_t n_frames, first, at_once, longest;
    uint32_t n, lengths[12], period; // of the last one
  } table[] = {
    // Bradshaw et al., table 2, in tenths of a second.
    { WEIR_CUT_GDB, 9009, 30, 0, 0, 9, { 30, 60, 120, 240, 480, 960, 1920, 3840, 1359 }, 7680 },
    { WEIR_CUT_GDB, 9009, 100, 0, 0, 7, { 100, 200, 400, 800, 1600, 3200, 2709 }, 6400 },
    { WEIR_CUT_GDB, 9009, 300, 0, 0, 5, { 300, 600, 1200, 2400, 4509 }, 4800 },
    { WEIR_CUT_GDB, 5, 5, 0, 0, 1, { 5 }, 5 },
    { WEIR_CUT_SKYSCRAPER, 193, 1, 0, 0, 11, { 1, 2, 2, 5, 5, 12, 12, 25, 25, 52, 52 }, 52 },
    { WEIR_CUT_SKYSCRAPER, 40, 1, 0, 5, 10, { 1, 2, 2, 5, 5, 5, 5, 5, 5, 5 }, 5 },
    { WEIR_CUT_GREEDY, 43, 1, 2, 0, 7, { 1, 2, 4, 4, 8, 8, 16 }, 16 },
    { WEIR_CUT_GREEDY, 127, 1, 3, 0, 7, { 1, 2, 4, 8, 16, 32, 64 }, 64 },
    { WEIR_CUT_GREEDY, 127, 1, 0, 0, 7, { 1, 2, 4, 8, 16, 32, 64 }, 64 },
    { WEIR_CUT_STAGGERED, 10, 3, 0, 0, 4, { 10, 10, 10, 10 }, 12 },
  };
  WeirSegment segments[WEIR_SEGMENTS_MAX];

  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    const int n = weir_segments_cut (table[i].cut, table[i].n_frames, table[i].first,
        table[i].at_once, table[i].longest, segments);
    CHECK_INT (n, table[i].n);
    for (int k = 0; k < n && k < (int) table[i].n; k++)
      CHECK_INT (segments[k].to - segments[k].from, table[i].lengths[k]);
    if (n > 0)
      CHECK_INT (segments[n - 1].period, table[i].period);
  }
}

static void
wrong_numbers_are_refused (void)
{
  WeirSegment segments[WEIR_SEGMENTS_MAX];

  CHECK_INT (weir_segments_cut (WEIR_CUT_GDB, 10, 0, 0, 0, segments), -EINVAL);
  CHECK_INT (weir_segments_cut (WEIR_CUT_GDB, 10, 11, 0, 0, segments), -EINVAL);
  CHECK_INT (weir_segments_cut (WEIR_CUT_SKYSCRAPER, 10, 5, 0, 4, segments), -EINVAL);
  CHECK_INT (weir_segments_cut (WEIR_CUT_STAGGERED, 1000, 1, 0, 0, segments), -E2BIG);
  CHECK_INT (weir_segments_cut (WEIR_CUT_SKYSCRAPER, 1000, 1, 0, 2, segments), -E2BIG);
  CHECK_INT (weir_segments_cut (WEIR_CUT_GREEDY, 1025, 1, 2, 0, segments), -E2BIG);
  CHECK_INT (weir_segments_cut (WEIR_CUT_GDB, UINT32_MAX, 1, 0, 0, segments), 32);
}

static void
errors_say_what_is_missing (void)
{
  static const struct {
    WeirSchemeConfig config;
    uint32_t n_frames;
    int64_t frame_ns;
    int code;
    const char *why;
  } table[] = {
    { { .kind = WEIR_SCHEME_GDB, .first = 10 }, 1200, 1000000000, -EBUSY,
        "gdb with a first segment of 10 s needs 7 groups for 1200 s; 6 of the pool's 6 are free" },
    { { .kind = WEIR_SCHEME_STAGGERED, .first = 1 }, 1200, 1000000000, -E2BIG,
        "staggered with a first segment of 1 s cuts a title of 1200 s into too many; make the "
        "first "
        "longer" },
    { { .kind = WEIR_SCHEME_GDB, .first = 0 }, 1200, 1000000000, -EINVAL,
        "a first segment or wait of 0 s is not between one frame and the title's 1200 s" },
    { { .kind = WEIR_SCHEME_BATCHING, .first = 1201 }, 1200, 1000000000, -EINVAL,
        "a first segment or wait of 1201 s is not between one frame and the title's 1200 s" },
    { { .kind = WEIR_SCHEME_SKYSCRAPER, .first = 10, .longest = 9 }, 1200, 1000000000, -EINVAL,
        "the longest segment, 9 s, is shorter than the first, 10 s" },
    { { .kind = WEIR_SCHEME_PATCHING, .threshold = 1201 }, 1200, 1000000000, -EINVAL,
        "a threshold or delay is longer than the title's 1200 s" },
    { { .kind = WEIR_SCHEME_PATCHING }, 0, 40000000, -EINVAL,
        "0 frames of 40 ms: a title has at least one frame, and up to 1e+06 s" },
    { { .kind = WEIR_SCHEME_PATCHING }, 4000000000, 40000000, -EINVAL,
        "4000000000 frames of 40 ms: a title has at least one frame, and up to 1e+06 s" },
  };
  WeirScheme scheme;
  WeirGroupPool pool;
  WeirReception reception;
  char why[WEIR_SCHEME_WHY];

  CHECK_INT (weir_group_pool_init (&pool, 6), 0);
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    CHECK_INT (weir_scheme_init (
                   &scheme, &table[i].config, table[i].n_frames, table[i].frame_ns, &pool, 0, why),
        table[i].code);
    CHECK (strcmp (why, table[i].why) == 0);
    if (strcmp (why, table[i].why))
      printf ("# %s\n", why);
  }
  CHECK_INT (weir_group_pool_count_free (&pool, 0), 6);
  for (uint32_t i = 0, number; i < 6; i++)
    CHECK_INT (weir_group_pool_take (&pool, 0, 90000000000, 0, &number), 0);
  CHECK_INT (weir_scheme_init (&scheme, &(WeirSchemeConfig) { .kind = WEIR_SCHEME_PATCHING }, 30000,
                 40000000, &pool, 0, why),
      0);
  CHECK_INT (weir_scheme_admit (&scheme, 30000000000, &reception, why), -EBUSY);
  CHECK (
      strcmp (why, "patching needs a group for a complete stream, and all 6 groups of the pool are "
                   "in use for another 60.0 s")
      == 0);
  weir_scheme_free (&scheme, 0);
  weir_group_pool_free (&pool);
}

static void
a_pool_gives_the_group_that_was_used_last (void)
{
  WeirGroupPool pool;
  uint32_t number;

  CHECK_INT (weir_group_pool_init (&pool, 0), -EINVAL);
  CHECK_INT (weir_group_pool_init (&pool, 3), 0);
  CHECK_INT (weir_group_pool_take (&pool, 0, 10, 0, &number), 0);
  CHECK_INT (number, 0);
  CHECK_INT (weir_group_pool_take (&pool, 0, 20, 0, &number), 0);
  CHECK_INT (number, 1);
  CHECK_INT (weir_group_pool_take (&pool, 20, 30, 0, &number), 0);
  CHECK_INT (number, 1);
  CHECK_INT (weir_group_pool_take (&pool, 20, 25, 0, &number), 0);
  CHECK_INT (number, 0);
  CHECK_INT (weir_group_pool_take (&pool, 20, INT64_MAX, 0, &number), 0);
  CHECK_INT (weir_group_pool_take (&pool, 24, 30, 0, &number), -EBUSY);
  CHECK_INT (weir_group_pool_next_free (&pool), 25);
  weir_group_pool_end (&pool, 2, 24);
  CHECK_INT (weir_group_pool_take (&pool, 24, 30, 0, &number), 0);
  CHECK_INT (number, 2);
  weir_group_pool_free (&pool);
}

static void
a_pool_keeps_the_rate_of_all_groups_within_a_limit (void)
{
  WeirGroupPool pool;
  uint32_t number;

  CHECK_INT (weir_group_pool_init (&pool, 4), 0);
  pool.rate_limit = 100;
  CHECK_INT (weir_group_pool_rate_left (&pool, 0), 100);
  CHECK_INT (weir_group_pool_take (&pool, 0, 10, 60, &number), 0);
  CHECK_INT (weir_group_pool_take (&pool, 0, 20, 40, &number), 0);
  CHECK_INT (weir_group_pool_rate_left (&pool, 5), 0);
  CHECK_INT (weir_group_pool_take (&pool, 5, 20, 1, &number), -EDQUOT);
  CHECK_INT (weir_group_pool_take (&pool, 5, 20, 0, &number), 0);
  CHECK_INT (weir_group_pool_take (&pool, 10, 20, 60, &number), 0);
  CHECK_INT (weir_group_pool_take (&pool, 10, 20, 1, &number), -EDQUOT);
  CHECK_INT (weir_group_pool_rate_left (&pool, 20), 100);
  weir_group_pool_free (&pool);
}

typedef struct {
  uint32_t n, first, last;

} Sent;

static void
note_sent (void *data, const WeirChannel *channel, uint32_t from, uint32_t to, int64_t at_ns)
{
  (void) at_ns;
  Sent *sent = &((Sent *) data)[channel->number];

  if (sent->n == 0)
    sent->first = from;
  sent->n += to - from;
  sent->last = to - 1;
}

// The example of Bradshaw et al., section 4.1.1: frames of 1 / 30 s, here of 1 ns; 15 s are 450 ns.
static void
work_requests_repeat_and_pause (void)
{
  const WeirWork opening = { .to = 100, .start_ns = 1000 };
  const WeirWork rest = { .from = 100, .to = 1350, .start_ns = 3000 };
  const WeirWork again = { .to = 1350, .start_ns = 5000, .repeat = 4, .pause_ns = 450 };
  WeirTransmission transmission;
  Sent sent[2] = { 0 };

  CHECK_INT (weir_transmission_init (&transmission, 1350, 1), 0);
  CHECK_INT (weir_transmission_add (&transmission, WEIR_CHANNEL_MULTICAST, 0, &opening), 0);
  CHECK_INT (weir_transmission_add (&transmission, WEIR_CHANNEL_MULTICAST, 0, &rest), 0);
  CHECK_INT (weir_transmission_add (&transmission, WEIR_CHANNEL_MULTICAST, 1, &again), 0);
  CHECK_INT (weir_transmission_add (
                 &transmission, WEIR_CHANNEL_MULTICAST, 1, &(WeirWork) { .from = 5, .to = 5 }),
      -EINVAL);
  CHECK_INT (
      weir_transmission_add (&transmission, WEIR_CHANNEL_MULTICAST, 1, &(WeirWork) { .to = 1351 }),
      -EINVAL);
  CHECK_INT (transmission.n_channels, 2);
  weir_transmission_due (&transmission, 0, 3000, 0, note_sent, sent);
  CHECK_INT (sent[0].n, 100);
  CHECK_INT (sent[0].last, 99);
  weir_transmission_advance (&transmission, 1100);
  CHECK_INT (transmission.channels[0].n_works, 1);
  weir_transmission_due (&transmission, 3000, 3001, 0, note_sent, sent);
  CHECK_INT (sent[0].last, 100);
  // The pause after the first transmission.
  weir_transmission_due (&transmission, 6350, 6800, 0, note_sent, sent);
  CHECK_INT (sent[1].n, 0);
  weir_transmission_due (&transmission, 6799, 6801, 0, note_sent, sent);
  CHECK_INT (sent[1].n, 1);
  CHECK_INT (sent[1].first, 0);
  sent[1].n = 0;
  weir_transmission_due (&transmission, 0, 1000000, 0, note_sent, sent);
  CHECK_INT (sent[1].n, 5 * 1350);
  CHECK_INT (weir_work_end_ns (&again, 1), 5000 + 4 * 1800 + 1350);
  weir_transmission_advance (&transmission, weir_work_end_ns (&again, 1));
  CHECK_INT (transmission.n_channels, 0);
  weir_transmission_free (&transmission);
}

static void
note_time (void *data, const WeirChannel *channel, uint32_t from, uint32_t to, int64_t at_ns)
{
  (void) channel;
  (void) from;
  CHECK_INT (to, from + 1);
  *(int64_t *) data = at_ns;
}

// Against all windows of one ns.
static void
the_next_time_is_that_of_the_first_frame_to_be_sent (void)
{
  const WeirWork works[] = {
    { .from = 3, .to = 7, .start_ns = 20, .repeat = 3, .pause_ns = 11 },
    { .from = 0, .to = 2, .start_ns = 300 },
    { .from = 1, .to = 2, .start_ns = 310, .repeat = WEIR_REPEAT_FOREVER, .pause_ns = 40 },
  };
  WeirTransmission transmission;

  for (size_t n = 0; n <= 3; n++) {
    int64_t expected = n == 3 ? 450 : INT64_MAX;
    CHECK_INT (weir_transmission_init (&transmission, 10, 5), 0);
    for (size_t i = 0; i < n; i++)
      CHECK_INT (weir_transmission_add (
                     &transmission, WEIR_CHANNEL_MULTICAST, (uint32_t) i / 2, &works[i]),
          0);
    if (n == 3)
      expected = weir_transmission_next (&transmission, 450);
    for (int64_t at = 449; at >= 0; at--) {
      weir_transmission_due (&transmission, at, at + 1, 0, note_time, &expected);
      CHECK_INT (weir_transmission_next (&transmission, at), expected);
    }
    weir_transmission_free (&transmission);
  }
}

// A queue takes the first 5 of 8 channels in each round, or in each second, third, ... round.
static void
no_channel_comes_last_more_often_than_others (void)
{
  for (uint32_t every = 1; every <= 16; every++) {
    for (uint32_t n = 2; n <= 9; n++) {
      uint32_t lost[9] = { 0 };
      for (uint32_t round = 0; round < 9000; round++) {
        const uint32_t first = weir_round_first (round * every, n);
        CHECK (first < n);
        lost[(first + n - 1) % n]++;
      }
      for (uint32_t i = 0; i < n; i++)
        CHECK (lost[i] * n > 8800 && lost[i] * n < 9200);
    }
  }
}

static void
note_last_segment (
    void *data, const WeirChannel *channel, uint32_t from, uint32_t to, int64_t at_ns)
{
  (void) at_ns;
  (void) to;
  *(uint32_t *) data += channel->works[0].to == 9009 && from >= channel->works[0].from;
}

// 3-GDB of titles of 900.9 s (Bradshaw et al., section 6.6), in tenths of a second. The titles
// begin at different times.
static void
staggered_titles_do_not_send_their_last_segments_together (void)
{
  WeirSchemeConfig configs[5];
  WeirPulse pulses[5];
  WeirScheme schemes[5];
  WeirGroupPool pool;
  char why[WEIR_SCHEME_WHY];
  uint32_t most = 0, ever = 0;

  CHECK_INT (weir_group_pool_init (&pool, 45), 0);
  for (uint32_t i = 0; i < 5; i++) {
    configs[i] = (WeirSchemeConfig) { .kind = WEIR_SCHEME_GDB, .first = 30 };
    CHECK (weir_scheme_pulse (&configs[i], 9009, 1, &pulses[i]));
    configs[i].delay = 30 * weir_stagger_choose (&pulses[i], pulses, i, 30);
    CHECK (configs[i].delay < 7680);
    CHECK (weir_scheme_pulse (&configs[i], 9009, 1, &pulses[i]));
    CHECK_INT (weir_scheme_init (&schemes[i], &configs[i], 9009, 1, &pool, 1000 * i, why), 0);
  }
  for (int64_t now = 7680; now < 4 * 7680; now++) {
    uint32_t busy = 0;
    for (int i = 0; i < 5; i++)
      weir_transmission_due (&schemes[i].transmission, now, now + 1, 0, note_last_segment, &busy);
    most = busy > most ? busy : most;
    ever += busy;
  }
  CHECK_INT (most, 1);
  CHECK_INT (ever, 5 * 3 * 1359);
  CHECK (!weir_scheme_pulse (
      &(WeirSchemeConfig) { .kind = WEIR_SCHEME_PATCHING, .first = 30 }, 9009, 1, &pulses[0]));
  for (int i = 0; i < 5; i++)
    weir_scheme_free (&schemes[i], 0);
  weir_group_pool_free (&pool);
}

static int64_t
common_time (const WeirPulse *own, int64_t delay, const WeirPulse *other, int64_t n)
{
  int64_t common = 0;

  for (int64_t now = 100000; now < 100000 + n; now++)
    common += (now - own->start_ns - delay) % own->period_ns < own->busy_ns
              && (now - other->start_ns) % other->period_ns < other->busy_ns;
  return common;
}

static void
a_stagger_has_the_least_common_time (void)
{
  for (int i = 0; i < 300; i++) {
    const uint32_t unit = draw (1, 4), units = draw (1, 30), period = unit * units;
    WeirPulse own = { draw (0, 99), draw (1, period), period };
    WeirPulse other = { draw (0, 99), 0, i % 2 ? period : period * draw (1, 4) };
    int64_t chosen, least = INT64_MAX;
    other.busy_ns = draw (1, (uint32_t) other.period_ns);
    chosen = weir_stagger_choose (&own, &other, 1, unit);
    CHECK (chosen < units);
    for (int64_t delay = 0; delay < units; delay++) {
      const int64_t common = common_time (&own, delay * unit, &other, 12 * period);
      least = common < least ? common : least;
    }
    CHECK_INT (common_time (&own, chosen * unit, &other, 12 * period), least);
  }
}

static void
arrival_rates_follow_the_arrivals (void)
{
  WeirArrivals arrivals = { 0 };
  int64_t now = 0;

  for (int i = 0; i < WEIR_ARRIVALS_MIN - 1; i++)
    weir_arrivals_add (&arrivals, 0);
  CHECK (weir_arrivals_rate (&arrivals, 0) == 0);
  weir_arrivals_add (&arrivals, 0);
  CHECK (weir_arrivals_rate (&arrivals, 0) < 1e4); // not infinite
  for (int i = 0; i < 200; i++, now += 500000000)
    weir_arrivals_add (&arrivals, now);
  CHECK (weir_arrivals_rate (&arrivals, now) > 1.9 && weir_arrivals_rate (&arrivals, now) < 2.1);
  CHECK (weir_arrivals_rate (&arrivals, now + 600000000000) < 0.11); // nobody for 10 minutes
  for (int i = 0; i < WEIR_ARRIVALS_KEPT; i++, now += 50000000)
    weir_arrivals_add (&arrivals, now);
  CHECK (weir_arrivals_rate (&arrivals, now) > 19 && weir_arrivals_rate (&arrivals, now) < 21);
}

static void
schemes_have_names (void)
{
  CHECK (strcmp (weir_scheme_name (WEIR_SCHEME_SKYSCRAPER), "skyscraper") == 0);
  CHECK_INT (weir_scheme_kind ("auto"), WEIR_SCHEME_AUTO);
  CHECK_INT (weir_scheme_kind ("GDB"), -1);
  CHECK (!weir_scheme_name ((WeirSchemeKind) 99));
}

int
main (void)
{
  RUN (gdb_gives_every_client_every_frame_in_time);
  RUN (greedy_does_so_within_the_groups_that_a_client_receives);
  RUN (skyscraper_does_so_with_two_groups);
  RUN (staggered_does_so_with_one);
  RUN (batching_and_patching_do_so);
  RUN (titles_share_a_pool_and_never_a_group);
  RUN (segments_are_those_of_the_papers);
  RUN (wrong_numbers_are_refused);
  RUN (errors_say_what_is_missing);
  RUN (a_pool_gives_the_group_that_was_used_last);
  RUN (a_pool_keeps_the_rate_of_all_groups_within_a_limit);
  RUN (work_requests_repeat_and_pause);
  RUN (the_next_time_is_that_of_the_first_frame_to_be_sent);
  RUN (no_channel_comes_last_more_often_than_others);
  RUN (staggered_titles_do_not_send_their_last_segments_together);
  RUN (a_stagger_has_the_least_common_time);
  RUN (arrival_rates_follow_the_arrivals);
  RUN (schemes_have_names);
  return tap_done ();
}
