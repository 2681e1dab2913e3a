// SPDX-License-Identifier: LGPL-2.1-or-later
#include "net/tcp_line.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tap.h"

#define MS INT64_C (1000000)
#define SECOND (1000 * MS)
#define START (100000 * SECOND)
#define FRAME (40 * MS)

// A sender of video at `rate`, 25 frames a second, whose socket sends at the `line`'s rate.
typedef struct {
  WeirTcpLine *tcp;
  uint64_t rate, line; // bit/s
  uint64_t most;       // bytes that the socket takes
  uint64_t written, acked, unsent;
  uint64_t more; // of what arrived, at every other sample
  int64_t round_trip, now;
  int64_t congested_at; // first time; -1: never
} Sim;

static void
begin (Sim *sim, uint64_t line, uint64_t rate)
{
  *sim = (Sim) { .tcp = weir_tcp_line_new (),
    .rate = rate,
    .line = line,
    .most = 256 * 1024,
    .round_trip = 20 * MS,
    .now = START };
}

static void
end (Sim *sim)
{
  weir_tcp_line_free (sim->tcp);
}

static void
put (Sim *sim, uint64_t bytes)
{
  bytes = bytes < sim->most - sim->unsent ? bytes : sim->most - sim->unsent;
  sim->unsent += bytes;
  sim->written += bytes;
}

static void
look (Sim *sim)
{
  WeirTcpSample sample = { .written = sim->written,
    .acked = sim->acked + (sim->now % (200 * MS) ? sim->more : 0),
    .unsent = sim->unsent,
    .rate = sim->line,
    .round_trip_ns = sim->round_trip };

  if (weir_tcp_line_is_due (sim->tcp, sim->now))
    weir_tcp_line_take (sim->tcp, &sample, sim->now);
}

static WeirEstimateView
run (Sim *sim, int64_t time)
{
  int64_t until = sim->now + time;
  WeirEstimateView view = { 0 };

  sim->congested_at = -1;
  for (; sim->now < until; sim->now += 5 * MS) {
    uint64_t can = sim->line / 8 * 5 / 1000;

    if (sim->now % FRAME == 0)
      put (sim, sim->rate / 8 / 25);
    can = can < sim->unsent ? can : sim->unsent;
    sim->unsent -= can;
    sim->acked += can;
    if (sim->now % (100 * MS) == 0)
      look (sim);
    view = weir_tcp_line_view (sim->tcp, sim->now);
    if (view.state == WEIR_ESTIMATE_CONGESTED && sim->congested_at < 0)
      sim->congested_at = sim->now - (until - time);
  }
  return view;
}

static bool
is_about (uint64_t bits, uint64_t expected)
{
  return bits > expected * 8 / 10 && bits < expected * 12 / 10;
}

static void
a_wide_line_is_clear (void)
{
  WeirEstimateView view;
  Sim sim;

  begin (&sim, 20000000, 4000000);
  CHECK_INT (weir_tcp_line_view (sim.tcp, sim.now).bits, 0);
  view = run (&sim, 10 * SECOND);
  CHECK_INT (sim.congested_at, -1);
  CHECK_INT (view.state, WEIR_ESTIMATE_CLEAR);
  CHECK (view.is_lower_bound && is_about (view.bits, 4000000));
  end (&sim);
}

// Each line below what is sent is seen, in time to leave out layers.
static void
a_narrow_line_is_seen (void)
{
  static const struct {
    uint64_t line;
    int64_t most; // until it is seen
  } cases[] = { { 600000, 400 * MS }, { 1000000, 400 * MS }, { 2000000, 600 * MS },
    { 3000000, 1000 * MS }, { 3600000, 3000 * MS } };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    WeirEstimateView view;
    Sim sim;

    begin (&sim, 20000000, 4000000);
    run (&sim, 10 * SECOND);
    sim.line = cases[i].line;
    view = run (&sim, 3 * SECOND);
    CHECK (sim.congested_at >= 0 && sim.congested_at <= cases[i].most);
    CHECK_INT (view.state, WEIR_ESTIMATE_CONGESTED);
    CHECK (!view.is_lower_bound && is_about (view.bits, cases[i].line));
    CHECK (view.queue_ns > 50 * MS);
    end (&sim);
  }
}

// What waits is sent while less comes. Meanwhile the line is full, and not said to be another
// flow's.
static void
a_queue_that_drains_is_ours (void)
{
  WeirEstimateView view;
  Sim sim;

  begin (&sim, 20000000, 4000000);
  run (&sim, 10 * SECOND);
  sim.line = 1000000;
  run (&sim, 3 * SECOND);
  sim.rate = 800000;
  view = run (&sim, 5 * SECOND); // 125 of 256 KiB
  CHECK_INT (view.state, WEIR_ESTIMATE_CONGESTED);
  CHECK (is_about (view.bits, 1000000));
  view = run (&sim, 10 * SECOND);
  CHECK_INT (view.state, WEIR_ESTIMATE_CLEAR);
  CHECK (view.is_lower_bound && is_about (view.bits, 800000));
  end (&sim);
}

static void
a_keyframe_is_no_queue (void)
{
  Sim sim;

  begin (&sim, 4000000, 1000000);
  run (&sim, 5 * SECOND);
  for (int i = 0; i < 5; i++) {
    put (&sim, 60000); // 120 ms of the line
    run (&sim, 2 * SECOND);
    CHECK_INT (sim.congested_at, -1);
  }
  end (&sim);
}

// Round trips grow by delayed acknowledgements, and by the queues of others.
static void
round_trips_that_are_long_are_no_queue_of_ours (void)
{
  WeirEstimateView view;
  Sim sim;

  begin (&sim, 20000000, 4000000);
  for (int i = 0; i < 30; i++) {
    sim.round_trip = (i % 2 ? 20 : 60) * MS;
    run (&sim, 100 * MS);
    CHECK_INT (sim.congested_at, -1);
  }
  sim.round_trip = 200 * MS;
  run (&sim, 20 * SECOND);
  view = run (&sim, 10 * SECOND);
  CHECK_INT (sim.congested_at, -1);
  CHECK (is_about (view.bits, 4000000));
  end (&sim);
}

// The sizes of segments behind a lost one are not known.
static void
what_is_taken_back_arrived_before (void)
{
  WeirEstimateView view;
  Sim sim;

  begin (&sim, 20000000, 4000000);
  run (&sim, 5 * SECOND);
  sim.more = 100000; // what comes in two spans
  sim.line = 1000000;
  view = run (&sim, 5 * SECOND);
  CHECK_INT (view.state, WEIR_ESTIMATE_CONGESTED);
  CHECK (is_about (view.bits, 1000000));
  end (&sim);
}

static void
a_reader_that_stops_is_seen (void)
{
  WeirEstimateView view;
  Sim sim;

  begin (&sim, 1000000000, 4000000);
  run (&sim, 5 * SECOND);
  sim.line = 0;
  view = run (&sim, 3 * SECOND);
  CHECK (sim.congested_at >= 0 && sim.congested_at <= SECOND);
  CHECK_INT (view.state, WEIR_ESTIMATE_CONGESTED);
  CHECK_INT (view.bits, 1);
  end (&sim);
}

static void
nothing_under_way_tells_nothing (void)
{
  WeirEstimateView view;
  Sim sim;

  begin (&sim, 20000000, 0);
  view = run (&sim, 5 * SECOND);
  CHECK_INT (view.bits, 0);
  CHECK_INT (view.state, WEIR_ESTIMATE_CLEAR);
  sim.rate = 4000000;
  run (&sim, 5 * SECOND);
  sim.rate = 0; // a pause
  view = run (&sim, 60 * SECOND);
  CHECK (is_about (view.bits, 4000000));
  end (&sim);
}

static void
odd_samples_are_bounded (void)
{
  static const WeirTcpSample odd[] = { { .acked = 1 }, { .unsent = UINT64_MAX },
    { .acked = UINT64_MAX, .unsent = UINT64_MAX, .rate = UINT64_MAX, .round_trip_ns = INT64_MAX },
    { .acked = 5, .unsent = 5, .rate = 1, .round_trip_ns = -1 } };
  Sim sim;

  begin (&sim, 20000000, 4000000);
  run (&sim, SECOND);
  for (int i = 0; i < 40; i++) {
    sim.now += i % 7 == 6 ? -SECOND : 200 * MS;
    weir_tcp_line_take (sim.tcp, &odd[i % 4], sim.now);
    CHECK (weir_tcp_line_view (sim.tcp, sim.now).queue_ns >= 0);
  }
  end (&sim);
}

static void
only_tcp_tells (void)
{
  struct sockaddr_in address = { .sin_family = AF_INET,
    .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
  int listener = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int client = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int udp = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), pair[2], served;
  socklen_t len = sizeof address;
  WeirTcpSample sample;
  char bytes[1000] = { 0 };

  CHECK (bind (listener, (struct sockaddr *) &address, sizeof address) == 0);
  CHECK (listen (listener, 1) == 0);
  CHECK (getsockname (listener, (struct sockaddr *) &address, &len) == 0);
  CHECK (connect (client, (struct sockaddr *) &address, sizeof address) == 0);
  served = accept (listener, NULL, NULL);
  CHECK_INT (send (served, bytes, sizeof bytes, 0), sizeof bytes);
  CHECK_INT (recv (client, bytes, sizeof bytes, MSG_WAITALL), sizeof bytes);
  CHECK (weir_tcp_sample (served, &sample));
  CHECK (sample.acked >= sizeof bytes && sample.acked <= sizeof bytes + 1);
  CHECK_INT (sample.unsent, 0);
  CHECK (!weir_tcp_sample (udp, &sample));
  CHECK (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
  CHECK (!weir_tcp_sample (pair[0], &sample));
  CHECK (!weir_tcp_sample (-1, &sample));
  for (int i = 0; i < 2; i++)
    close (pair[i]);
  close (udp);
  close (served);
  close (client);
  close (listener);
}

int
main (void)
{
  RUN (a_wide_line_is_clear);
  RUN (a_narrow_line_is_seen);
  RUN (a_queue_that_drains_is_ours);
  RUN (a_keyframe_is_no_queue);
  RUN (round_trips_that_are_long_are_no_queue_of_ours);
  RUN (what_is_taken_back_arrived_before);
  RUN (a_reader_that_stops_is_seen);
  RUN (nothing_under_way_tells_nothing);
  RUN (odd_samples_are_bounded);
  RUN (only_tcp_tells);
  return tap_done ();
}
