// SPDX-License-Identifier: LGPL-2.1-or-later
#include "net/estimate.h"

#include "line.h"
#include "tap.h"

#define MS LINE_MS
#define SECOND (1000 * MS)
#define START (1000 * SECOND)
#define PACKET 1200

// A sender of video at `rate`, 25 frames a second, over a line.
typedef struct {
  Line line;
  WeirEstimate *estimate;
  uint64_t rate;
  uint16_t number;
  int64_t now;
  int64_t congested_at; // first time
  unsigned n_congested; // of the milliseconds
} Sim;

static void
begin (Sim *sim, uint64_t line_rate, uint64_t rate)
{
  *sim = (Sim) { .rate = rate, .now = START, .number = 65000 };
  sim->line = (Line) {
    .rate = line_rate, .buffer = 300 * MS, .delay = 20 * MS, .random = 1, .next_told = sim->number
  };
  sim->estimate = weir_estimate_new (WEIR_ESTIMATE_RING);
}

static void
end (Sim *sim)
{
  weir_estimate_free (sim->estimate);
}

static void
send_frame (Sim *sim)
{
  for (size_t left = sim->rate / 8 / 25; left > 0;) {
    size_t size = left < PACKET ? left : PACKET;

    weir_estimate_sent (sim->estimate, sim->number++, size, sim->now);
    line_send (&sim->line, size, sim->now);
    left -= size;
  }
}

static WeirEstimateView
run (Sim *sim, int64_t time)
{
  static WeirFeedback feedback;
  int64_t until = sim->now + time;
  WeirEstimateView view = { 0 };

  sim->congested_at = -1;
  sim->n_congested = 0;
  for (; sim->now < until; sim->now += MS) {
    if (sim->now / MS % 40 == 0)
      send_frame (sim);
    if (line_feedback (&sim->line, sim->now, &feedback))
      weir_estimate_feedback (sim->estimate, &feedback, sim->now);
    view = weir_estimate_view (sim->estimate, sim->now);
    if (view.state == WEIR_ESTIMATE_CONGESTED) {
      sim->n_congested++;
      if (sim->congested_at < 0)
        sim->congested_at = sim->now - (until - time);
    }
  }
  return view;
}

static bool
is_about (uint64_t bits, uint64_t expected)
{
  return bits > expected * 9 / 10 && bits < expected * 11 / 10;
}

static void
a_wide_line_is_clear (void)
{
  WeirEstimateView view;
  Sim sim;

  begin (&sim, 20000000, 4000000);
  view = run (&sim, 10 * SECOND);
  CHECK_INT (view.state, WEIR_ESTIMATE_CLEAR);
  CHECK (view.is_lower_bound);
  CHECK (is_about (view.bits, 4000000));
  CHECK_INT (sim.n_congested, 0);
  CHECK_INT (view.loss, 0);
  end (&sim);
}

static void
a_cut_is_seen_within_a_second (void)
{
  static const int64_t buffers[] = { 40 * MS, 100 * MS, 300 * MS, 2 * SECOND };

  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
    WeirEstimateView view;
    Sim sim;

    begin (&sim, 5000000, 4000000);
    run (&sim, 10 * SECOND);
    CHECK_INT (sim.n_congested, 0);
    sim.line.buffer = buffers[i];
    sim.line.rate = 600000;
    view = run (&sim, SECOND);
    CHECK_INT (view.state, WEIR_ESTIMATE_CONGESTED);
    CHECK (!view.is_lower_bound);
    CHECK (sim.congested_at >= 0 && sim.congested_at < 900 * MS);
    CHECK (is_about (view.bits, 600000));
    printf ("# buffer %lld ms: congested after %lld ms, %llu bit/s\n",
        (long long) (buffers[i] / MS), (long long) (sim.congested_at / MS),
        (unsigned long long) view.bits);
    // A rate that fits is clear again.
    sim.rate = 400000;
    run (&sim, 5 * SECOND);
    view = run (&sim, 5 * SECOND);
    CHECK_INT (view.state, WEIR_ESTIMATE_CLEAR);
    CHECK (is_about (view.bits, 400000));
    end (&sim);
  }
}

static void
random_loss_is_no_congestion (void)
{
  WeirEstimateView view;
  Sim sim;

  begin (&sim, 20000000, 4000000);
  sim.line.loss = 20;
  view = run (&sim, 60 * SECOND);
  CHECK_INT (sim.n_congested, 0);
  CHECK (view.loss > 5 && view.loss < 50);
  end (&sim);
}

int
main (void)
{
  RUN (a_wide_line_is_clear);
  RUN (a_cut_is_seen_within_a_second);
  RUN (random_loss_is_no_congestion);
  return tap_done ();
}
