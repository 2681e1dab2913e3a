// SPDX-License-Identifier: LGPL-2.1-or-later
#include "net/estimate.h"

#include "line.h"
#include "tap.h"

#define MS LINE_MS
#define SECOND (1000 * MS)
#define START (100000 * SECOND)
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

// ---- bad input ----

static void
a_clock_may_drift (void)
{
  Sim sim;

  begin (&sim, 20000000, 4000000);
  sim.line.ppm = 500;
  run (&sim, 120 * SECOND);
  CHECK_INT (sim.n_congested, 0);
  end (&sim);
}

static void
a_clock_may_step (void)
{
  static const int64_t steps[] = { 3600 * SECOND, -3600 * SECOND, 5 * SECOND, -5 * SECOND,
    INT64_C (86400) * 12 * SECOND };

  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    for (int ours = 0; ours < 2; ours++) {
      WeirEstimateView view;
      Sim sim;

      begin (&sim, 20000000, 4000000);
      run (&sim, 10 * SECOND);
      if (!ours) {
        sim.line.step += steps[i];
      } else {
        // All that is under way moves too, as the line has no clock.
        for (size_t j = 0; j < sim.line.n; j++)
          sim.line.arrivals[j] += sim.line.arrivals[j] >= 0 ? steps[i] : 0;
        sim.now += steps[i];
        sim.line.free_at += steps[i];
        sim.line.report_due += steps[i];
        sim.line.step -= steps[i];
      }
      view = run (&sim, 5 * SECOND);
      CHECK_INT (view.state, WEIR_ESTIMATE_CLEAR);
      CHECK (is_about (view.bits, 4000000));
      CHECK (weir_estimate_counts (sim.estimate).steps >= 1);
      // It still sees a cut.
      sim.line.rate = 600000;
      run (&sim, SECOND);
      CHECK (sim.n_congested > 100);
      end (&sim);
    }
  }
}

// A reader says all is well, whatever arrives.
static void
a_liar_gets_no_more_than_was_sent (void)
{
  static WeirFeedback feedback;
  WeirEstimateView view = { 0 };
  Sim sim;

  begin (&sim, 20000000, 1000000);
  sim.line.silent = true;
  for (int i = 0; i < 200; i++, sim.now += 40 * MS) {
    uint16_t first = sim.number;

    send_frame (&sim);
    feedback = (WeirFeedback) { .first = first, .n = (uint16_t) (sim.number - first) };
    for (size_t j = 0; j < feedback.n; j++) {
      feedback.arrived[j] = true;
      feedback.ticks[j] = (uint32_t) (i * 160 / 100); // a clock that is much too slow
    }
    weir_estimate_feedback (sim.estimate, &feedback, sim.now + 40 * MS);
    view = weir_estimate_view (sim.estimate, sim.now);
  }
  CHECK (view.bits < 1100000);
  CHECK (view.is_lower_bound);
  end (&sim);
}

static void
wrong_numbers_are_counted (void)
{
  static WeirFeedback feedback;
  WeirEstimateCounts counts;
  Sim sim;

  begin (&sim, 20000000, 4000000);
  run (&sim, 5 * SECOND);
  counts = weir_estimate_counts (sim.estimate);
  CHECK_INT (counts.unknown, 0);
  CHECK (counts.arrived > 1000);
  // Of packets that were never sent, all numbers.
  for (unsigned i = 0; i < 64; i++) {
    feedback.first = (uint16_t) (sim.number + 1024 * i);
    feedback.n = WEIR_FEEDBACK_MAX;
    memset (feedback.arrived, 1, sizeof feedback.arrived);
    weir_estimate_feedback (sim.estimate, &feedback, sim.now);
  }
  CHECK (weir_estimate_counts (sim.estimate).unknown > 60 * WEIR_FEEDBACK_MAX);
  CHECK (weir_estimate_counts (sim.estimate).arrived < counts.arrived + 100);
  // Feedback that comes twice.
  counts = weir_estimate_counts (sim.estimate);
  weir_estimate_feedback (sim.estimate, &feedback, sim.now);
  CHECK_INT (weir_estimate_counts (sim.estimate).unknown, counts.unknown + WEIR_FEEDBACK_MAX);
  end (&sim);
}

static void
a_flood_is_refused (void)
{
  static WeirFeedback feedback;
  WeirEstimate *estimate = weir_estimate_new (WEIR_ESTIMATE_RING);

  for (int i = 0; i < 10000; i++)
    weir_estimate_feedback (estimate, &feedback, START + i * MS / 10);
  CHECK_INT (weir_estimate_counts (estimate).refused, 9800);
  CHECK_INT (weir_estimate_counts (estimate).feedbacks, 200);
  weir_estimate_free (estimate);
}

static void
silence_is_congestion (void)
{
  WeirEstimateView view;
  Sim sim;

  begin (&sim, 20000000, 4000000);
  run (&sim, 5 * SECOND);
  sim.line.silent = true;
  view = run (&sim, 900 * MS);
  CHECK_INT (view.state, WEIR_ESTIMATE_CLEAR);
  view = run (&sim, 300 * MS);
  CHECK_INT (view.state, WEIR_ESTIMATE_CONGESTED);
  CHECK (view.bits > 1500000 && view.bits < 2500000);
  view = run (&sim, 5 * SECOND);
  CHECK (view.bits < 100000);
  sim.line.silent = false;
  run (&sim, 5 * SECOND);
  view = run (&sim, 5 * SECOND);
  CHECK_INT (view.state, WEIR_ESTIMATE_CLEAR);
  end (&sim);

  // A sender that pauses hears nothing, and that is well.
  begin (&sim, 20000000, 4000000);
  run (&sim, 5 * SECOND);
  sim.rate = 0;
  view = run (&sim, 10 * SECOND);
  CHECK_INT (view.state, WEIR_ESTIMATE_CLEAR);
  sim.rate = 4000000;
  view = run (&sim, 500 * MS);
  CHECK_INT (sim.n_congested, 0);
  end (&sim);
}

// A reader may also tell that nothing comes. Its clock has not stepped when packets come again.
static void
nothing_that_comes_is_congestion (void)
{
  static WeirFeedback feedback;
  WeirEstimateView view = { 0 };
  Sim sim;

  begin (&sim, 20000000, 4000000);
  run (&sim, 5 * SECOND);
  for (int i = 0; i < 75; i++, sim.now += 40 * MS) {
    feedback = (WeirFeedback) { .first = sim.line.next_told };
    send_frame (&sim);
    feedback.n = (uint16_t) (sim.number - feedback.first);
    sim.line.next_told = sim.number;
    sim.line.n = 0;
    weir_estimate_feedback (sim.estimate, &feedback, sim.now);
    view = weir_estimate_view (sim.estimate, sim.now);
    CHECK (i > 22 || view.state == WEIR_ESTIMATE_CLEAR);
    CHECK (i < 27 || view.state == WEIR_ESTIMATE_CONGESTED);
  }
  CHECK (view.bits < 1500000);
  run (&sim, 5 * SECOND);
  CHECK_INT (weir_estimate_counts (sim.estimate).steps, 0);
  view = run (&sim, 5 * SECOND);
  CHECK_INT (view.state, WEIR_ESTIMATE_CLEAR);
  CHECK (is_about (view.bits, 4000000));
  end (&sim);
}

static void
packets_found_late_are_not_lost (void)
{
  static WeirFeedback feedback = { .n = 10, .first = 1 };
  WeirEstimate *estimate = weir_estimate_new (64);

  for (uint16_t i = 0; i < 20; i++)
    weir_estimate_sent (estimate, i, PACKET, START);
  memset (feedback.arrived, 1, 10);
  feedback.arrived[3] = feedback.arrived[4] = false;
  weir_estimate_feedback (estimate, &feedback, START + 50 * MS);
  CHECK_INT (weir_estimate_counts (estimate).lost, 2);
  feedback.arrived[3] = true;
  weir_estimate_feedback (estimate, &feedback, START + 100 * MS);
  CHECK_INT (weir_estimate_counts (estimate).lost, 1);
  CHECK_INT (weir_estimate_counts (estimate).arrived, 9);
  weir_estimate_free (estimate);
}

static void
remb_only_lowers_for_a_time (void)
{
  WeirEstimateView before, view;
  Sim sim;

  begin (&sim, 20000000, 4000000);
  weir_estimate_remb (sim.estimate, 1000, sim.now);
  CHECK_INT (weir_estimate_view (sim.estimate, sim.now).bits, 0);
  sim.now += 10 * SECOND;
  before = run (&sim, 10 * SECOND);
  CHECK (is_about (before.bits, 4000000));
  weir_estimate_remb (sim.estimate, 9000000, sim.now);
  view = weir_estimate_view (sim.estimate, sim.now);
  CHECK_INT (view.bits, before.bits);
  CHECK (view.is_lower_bound);
  weir_estimate_remb (sim.estimate, 500000, sim.now);
  view = weir_estimate_view (sim.estimate, sim.now);
  CHECK_INT (view.bits, 500000);
  CHECK_INT (view.state, WEIR_ESTIMATE_CONGESTED);
  CHECK (!view.is_lower_bound);
  view = run (&sim, 6 * SECOND);
  CHECK (is_about (view.bits, 4000000));
  CHECK_INT (view.state, WEIR_ESTIMATE_CLEAR);
  end (&sim);
}

int
main (void)
{
  RUN (a_wide_line_is_clear);
  RUN (a_cut_is_seen_within_a_second);
  RUN (random_loss_is_no_congestion);
  RUN (a_clock_may_drift);
  RUN (a_clock_may_step);
  RUN (a_liar_gets_no_more_than_was_sent);
  RUN (wrong_numbers_are_counted);
  RUN (a_flood_is_refused);
  RUN (silence_is_congestion);
  RUN (nothing_that_comes_is_congestion);
  RUN (packets_found_late_are_not_lost);
  RUN (remb_only_lowers_for_a_time);
  return tap_done ();
}
