// SPDX-License-Identifier: LGPL-2.1-or-later
#include "net/steps.h"

#include "ladder.h"
#include "line.h"
#include "tap.h"

#define MS LINE_MS
#define SECOND (1000 * MS)
#define START (1000 * SECOND)
#define PACKET 1200

#define STEPS (sizeof ladder / sizeof *ladder)
#define TOP ((int) STEPS - 1)

static int
step_of (const WeirStep *step)
{
  for (size_t i = 0; i < STEPS; i++) {
    if (ladder[i].kind == step->kind && weir_layer_set_equal (ladder[i].set, step->set))
      return (int) i;
  }
  return -1;
}

// ---- single decisions ----

static WeirSteps steps;

static void
begin_at (int step)
{
  weir_steps_init (&steps, WEIR_LAYER_SET_ALL, 1, START);
  steps.now = ladder[step];
}

static WeirStepsDecision
decide (WeirEstimateState state, uint64_t bits, int64_t after)
{
  WeirStepsInput input = {
    .line = { .state = state, .bits = bits }, .key_ns = INT64_MIN, .can_probe = true
  };

  return weir_steps_decide (&steps, &input, ladder, STEPS, START + after);
}

static void
a_congested_reader_goes_down (void)
{
  static const struct {
    int from;
    uint64_t bits;
    int to;
  } cases[] = {
    { TOP, 3300000, TOP }, // 0.9 of it is enough
    { TOP, 3200000, 8 },
    { TOP, 600000, 4 },
    { TOP, 99999, 0 },
    { TOP, 100000, 1 },
    { TOP, 1, 0 },
    { 3, 5000000, 3 }, // never up
    { 0, 1, 0 },
  };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    WeirStepsDecision decision;

    begin_at (cases[i].from);
    decision = decide (WEIR_ESTIMATE_CONGESTED, cases[i].bits, 0);
    // Above half of its rate it has patience.
    if (cases[i].bits >= ladder[cases[i].from].bits / 2)
      decision = decide (WEIR_ESTIMATE_CONGESTED, cases[i].bits, 1300 * MS);
    CHECK_INT (step_of (&decision.step), cases[i].to);
    CHECK_INT (decision.probe_bits, 0);
    CHECK_INT (decision.reason, cases[i].to < cases[i].from ? WEIR_STEPS_DELAY : WEIR_STEPS_BEGUN);
  }
}

static void
a_reader_with_more_goes_down_first (void)
{
  WeirStepsDecision decision;

  begin_at (TOP);
  decide (WEIR_ESTIMATE_CONGESTED, 2600000, 0);
  decision = decide (WEIR_ESTIMATE_CONGESTED, 2600000, 300 * MS);
  CHECK_INT (step_of (&decision.step), 8);
  begin_at (4);
  decide (WEIR_ESTIMATE_CONGESTED, 330000, 0);
  decision = decide (WEIR_ESTIMATE_CONGESTED, 330000, 800 * MS);
  CHECK_INT (step_of (&decision.step), 4);
  // The line has room in between: it begins to wait anew.
  decide (WEIR_ESTIMATE_WARNING, 330000, 900 * MS);
  decide (WEIR_ESTIMATE_CONGESTED, 330000, 1000 * MS);
  decision = decide (WEIR_ESTIMATE_CONGESTED, 330000, 1800 * MS);
  CHECK_INT (step_of (&decision.step), 4);
  decision = decide (WEIR_ESTIMATE_CONGESTED, 330000, 2300 * MS);
  CHECK_INT (step_of (&decision.step), 3);
}

static void
nothing_changes_without_an_estimate (void)
{
  WeirStepsInput input = { .line = { .state = WEIR_ESTIMATE_CONGESTED, .bits = 1000 } };
  WeirStepsDecision decision;

  begin_at (TOP);
  decision = decide (WEIR_ESTIMATE_CLEAR, 0, 100 * SECOND);
  CHECK_INT (step_of (&decision.step), TOP);
  decision = weir_steps_decide (&steps, &input, ladder, 0, START);
  CHECK_INT (step_of (&decision.step), TOP);
}

static void
a_reader_goes_up_after_a_probe (void)
{
  WeirStepsDecision decision;

  begin_at (4);
  steps.rose = true;
  decision = decide (WEIR_ESTIMATE_CLEAR, 370000, 2 * SECOND);
  CHECK_INT (decision.probe_bits, 0);
  decision = decide (WEIR_ESTIMATE_CLEAR, 370000, 4 * SECOND);
  // It aims at twice what is known, at most.
  CHECK_INT (decision.probe_bits, 740000);
  CHECK_INT (decision.probe_ns, 300 * MS);
  CHECK_INT (step_of (&decision.step), 4);
  decision = decide (WEIR_ESTIMATE_CLEAR, 600000, 4 * SECOND + 400 * MS);
  CHECK_INT (step_of (&decision.step), 4);
  CHECK (weir_steps_is_probing (&steps));
  decision = decide (WEIR_ESTIMATE_CLEAR, 690000, 4 * SECOND + 500 * MS);
  CHECK_INT (step_of (&decision.step), 5);
  CHECK_INT (decision.reason, WEIR_STEPS_ROOM);
  CHECK (!weir_steps_is_probing (&steps));
  // It waits before the next one.
  decision = decide (WEIR_ESTIMATE_CLEAR, 5000000, 5 * SECOND);
  CHECK_INT (step_of (&decision.step), 5);
  // What the media show needs no probe.
  decision = decide (WEIR_ESTIMATE_CLEAR, 4000000, 9 * SECOND);
  CHECK_INT (step_of (&decision.step), TOP);
  CHECK_INT (decision.probe_bits, 0);
}

static void
no_probe_comes_at_the_wrong_time (void)
{
  WeirStepsInput input = {
    .line = { .state = WEIR_ESTIMATE_CLEAR, .bits = 370000 }, .key_ns = START, .can_probe = true
  };

  begin_at (4);
  // Just before a second after a keyframe; keyframes come each 4 s.
  weir_steps_decide (&steps, &input, ladder, STEPS, START);
  input.key_ns = START + 4 * SECOND;
  CHECK_INT (weir_steps_decide (&steps, &input, ladder, STEPS, START + 4900 * MS).probe_bits, 0);
  // Another reader behind the same line is probed.
  input.others = true;
  CHECK_INT (weir_steps_decide (&steps, &input, ladder, STEPS, START + 7 * SECOND).probe_bits, 0);
  input.others = false;
  input.line.state = WEIR_ESTIMATE_WARNING;
  CHECK_INT (weir_steps_decide (&steps, &input, ladder, STEPS, START + 7 * SECOND).probe_bits, 0);
  input.line.state = WEIR_ESTIMATE_CLEAR;
  CHECK (weir_steps_decide (&steps, &input, ladder, STEPS, START + 7 * SECOND).probe_bits > 0);

  // Keyframes come each second: a quarter of one is enough.
  begin_at (4);
  for (int i = 0; i < 6; i++) {
    input.key_ns = START + i * SECOND;
    input.line.bits = 1000;
    weir_steps_decide (&steps, &input, ladder, STEPS, START);
  }
  input.line.bits = 370000;
  CHECK_INT (weir_steps_decide (&steps, &input, ladder, STEPS, START + 5200 * MS).probe_bits, 0);
  CHECK (weir_steps_decide (&steps, &input, ladder, STEPS, START + 5300 * MS).probe_bits > 0);

  // At the top there is nothing to probe for.
  begin_at (TOP);
  CHECK_INT (decide (WEIR_ESTIMATE_CLEAR, 370000, 500 * SECOND).probe_bits, 0);
}

// Returns after how many tenths of a second the first probe comes.
static int64_t
first_probe (uint32_t seed)
{
  int64_t tenths = 0;

  weir_steps_init (&steps, WEIR_LAYER_SET_ALL, seed, START);
  steps.now = ladder[4];
  while (decide (WEIR_ESTIMATE_CLEAR, 370000, tenths * 100 * MS).probe_bits == 0 && tenths < 100)
    tenths++;
  return tenths;
}

static void
readers_are_probed_at_different_times (void)
{
  unsigned n[101] = { 0 }, n_times = 0;

  for (uint32_t seed = 0; seed < 100; seed++)
    n[first_probe (seed * 0x9e3779b9u)]++;
  for (size_t i = 0; i <= 100; i++) {
    CHECK (n[i] < 30 && (n[i] == 0 || (i >= 24 && i <= 36)));
    n_times += n[i] > 0;
  }
  CHECK (n_times > 8);
}

static void
probes_that_fail_come_seldom (void)
{
  int64_t last = 0;
  unsigned n = 0, n_wide = 0;

  begin_at (4);
  for (int64_t after = 0; after < 1800 * SECOND; after += 100 * MS) {
    WeirStepsDecision decision = decide (WEIR_ESTIMATE_CLEAR, 380000, after);

    CHECK_INT (step_of (&decision.step), 4);
    if (decision.probe_bits == 0)
      continue;
    n_wide += after - last > 90 * SECOND;
    CHECK (after - last < 146 * SECOND && after - last > 2 * SECOND);
    last = after;
    n++;
  }
  printf ("# %u probes in half an hour\n", n);
  CHECK (n < 30 && n_wide > 8);
  CHECK_INT (steps.n_failed, weir_steps_is_probing (&steps) ? n - 1 : n);
}

static void
a_probe_that_fills_the_line_shows_what_it_carries (void)
{
  WeirStepsDecision decision;

  begin_at (4);
  steps.rose = true;
  CHECK (decide (WEIR_ESTIMATE_CLEAR, 600000, 4 * SECOND).probe_bits > 0);
  CHECK_INT (steps.probed_bits, 880000 * 11 / 10);
  // The line carries no 880 kb/s, but 620.
  decision = decide (WEIR_ESTIMATE_CONGESTED, 700000, 4 * SECOND + 400 * MS);
  CHECK_INT (step_of (&decision.step), 5);
  CHECK_INT (decision.reason, WEIR_STEPS_ROOM);
  // One that the line does not carry fails, and the next one aims lower.
  begin_at (4);
  steps.rose = true;
  CHECK (decide (WEIR_ESTIMATE_CLEAR, 600000, 4 * SECOND).probe_bits > 0);
  decision = decide (WEIR_ESTIMATE_CONGESTED, 620000, 4 * SECOND + 400 * MS);
  CHECK_INT (step_of (&decision.step), 4);
  CHECK_INT (steps.n_failures, 1);
  CHECK (decide (WEIR_ESTIMATE_CLEAR, 600000, 12 * SECOND).probe_bits > 0);
  CHECK_INT (steps.probed_bits, 682000);
}

static void
a_step_far_above_is_approached (void)
{
  WeirStepsDecision decision;

  begin_at (7);
  decision = decide (WEIR_ESTIMATE_CLEAR, 1200000, 4 * SECOND);
  CHECK_INT (decision.probe_bits, 1500000);
  // It is shown, but is not enough: another one follows at once.
  CHECK_INT (decision.probe_ns, 500 * MS);
  decision = decide (WEIR_ESTIMATE_CLEAR, 1400000, 4 * SECOND + 600 * MS);
  CHECK (weir_steps_is_probing (&steps));
  decision = decide (WEIR_ESTIMATE_CLEAR, 1400000, 4 * SECOND + 700 * MS);
  CHECK_INT (step_of (&decision.step), 7);
  decision = decide (WEIR_ESTIMATE_CLEAR, 1400000, 4 * SECOND + 800 * MS);
  CHECK_INT (decision.probe_bits, 1875000);
  CHECK_INT (decision.probe_ns, 300 * MS);
  decide (WEIR_ESTIMATE_CLEAR, 1800000, 5200 * MS);
  CHECK (weir_steps_is_probing (&steps));
  decide (WEIR_ESTIMATE_CLEAR, 1800000, 5300 * MS);
  // The third one aims at the step.
  decision = decide (WEIR_ESTIMATE_CLEAR, 1800000, 5400 * MS);
  CHECK_INT (decision.probe_bits, 2460000);
  CHECK_INT (steps.n_failures, 0);
  decision = decide (WEIR_ESTIMATE_CLEAR, 2300000, 5700 * MS);
  CHECK_INT (step_of (&decision.step), 8);
}

static void
a_probe_that_fills_the_queue_ends (void)
{
  WeirStepsInput input = {
    .line = { .state = WEIR_ESTIMATE_CLEAR, .bits = 450000 }, .key_ns = INT64_MIN, .can_probe = true
  };
  WeirStepsDecision decision;

  begin_at (4);
  decision = weir_steps_decide (&steps, &input, ladder, STEPS, START + 4 * SECOND);
  CHECK_INT (decision.probe_bits, 562500);
  input.line.bits = 550000;
  input.line.queue_ns = 15 * MS;
  decision = weir_steps_decide (&steps, &input, ladder, STEPS, START + 4200 * MS);
  CHECK (!decision.ends_probe && weir_steps_is_probing (&steps));
  input.line.queue_ns = 21 * MS;
  input.line.full_bits = 420000;
  decision = weir_steps_decide (&steps, &input, ladder, STEPS, START + 4300 * MS);
  CHECK (decision.ends_probe && !weir_steps_is_probing (&steps));
  CHECK_INT (step_of (&decision.step), 4);
  CHECK_INT (steps.n_failures, 1);
  // The next row begins at what the line carried, not at what it took.
  input.line.queue_ns = 0;
  input.line.full_bits = 0;
  decision = weir_steps_decide (&steps, &input, ladder, STEPS, START + 8 * SECOND);
  CHECK_INT (decision.probe_bits, 525000);
}

static void
bursts_as_fast_as_when_a_probe_failed_show_nothing (void)
{
  WeirStepsInput input = {
    .line = { .state = WEIR_ESTIMATE_CLEAR, .bits = 450000, .burst_bits = 9000000 },
    .key_ns = INT64_MIN,
    .can_probe = true
  };

  begin_at (4);
  weir_steps_decide (&steps, &input, ladder, STEPS, START + 4 * SECOND);
  input.line.queue_ns = 30 * MS;
  weir_steps_decide (&steps, &input, ladder, STEPS, START + 4300 * MS);
  CHECK_INT (steps.n_failures, 1);
  input.line.queue_ns = 0;
  weir_steps_decide (&steps, &input, ladder, STEPS, START + 4400 * MS);
  CHECK_INT (steps.n_failures, 1);
  // Much faster ones do.
  input.line.burst_bits = 14000000;
  CHECK (weir_steps_decide (&steps, &input, ladder, STEPS, START + 4500 * MS).probe_bits > 0);
  CHECK_INT (steps.n_failures, 0);
}

static void
one_in_eight_is_probed (void)
{
  CHECK_INT (weir_steps_together (0), 1);
  CHECK_INT (weir_steps_together (15), 1);
  CHECK_INT (weir_steps_together (16), 2);
  CHECK_INT (weir_steps_together (160), 20);
}

static void
a_reader_that_cannot_be_probed_rises_on_trial (void)
{
  WeirStepsInput input = { .line = { .state = WEIR_ESTIMATE_CLEAR, .bits = 370000 },
    .key_ns = INT64_MIN };
  WeirStepsDecision decision;

  begin_at (4);
  decision = weir_steps_decide (&steps, &input, ladder, STEPS, START + 4 * SECOND);
  CHECK_INT (step_of (&decision.step), 5);
  CHECK_INT (decision.reason, WEIR_STEPS_TRIAL);
  // It fails.
  input.line.state = WEIR_ESTIMATE_CONGESTED;
  input.line.bits = 500000;
  weir_steps_decide (&steps, &input, ladder, STEPS, START + 4500 * MS);
  decision = weir_steps_decide (&steps, &input, ladder, STEPS, START + 5800 * MS);
  CHECK_INT (step_of (&decision.step), 4);
  CHECK_INT (steps.n_failures, 1);
  input.line.state = WEIR_ESTIMATE_CLEAR;
  decision = weir_steps_decide (&steps, &input, ladder, STEPS, START + 8 * SECOND);
  CHECK_INT (step_of (&decision.step), 4);
  decision = weir_steps_decide (&steps, &input, ladder, STEPS, START + 11 * SECOND);
  CHECK_INT (step_of (&decision.step), 5);
}

static void
a_step_that_has_ended_counts_as_the_highest (void)
{
  WeirStepsInput input = { .line = { .state = WEIR_ESTIMATE_CLEAR, .bits = 100000 },
    .key_ns = INT64_MIN };
  WeirStepsDecision decision;

  begin_at (6);
  decision = weir_steps_decide (&steps, &input, ladder, 3, START + 1);
  CHECK_INT (step_of (&decision.step), 2);
}

static void
steps_are_listed_by_rate (void)
{
  WeirStep list[WEIR_STEPS_MAX];
  WeirRates rates = { .n = 3, .key_bitrate = 1000, .reference_bitrate = 4000 };

  CHECK_INT (weir_steps_list (&rates, WEIR_LAYER_SET_ALL, NULL, 0, list), 0);
  for (unsigned i = 0; i < 3; i++) {
    rates.layers[i].temporal = (uint8_t) i;
    rates.layers[i].bitrate = 5000 * (i + 1);
  }
  CHECK_INT (weir_steps_list (&rates, WEIR_LAYER_SET_ALL, NULL, 0, list), 5);
  CHECK_INT (list[0].kind, WEIR_STEP_KEYFRAMES);
  CHECK_INT (list[0].bits, 1000);
  CHECK_INT (list[1].kind, WEIR_STEP_REFERENCES);
  CHECK_INT (list[1].bits, 4000);
  CHECK_INT (list[2].set.temporal, 0);
  CHECK_INT (list[3].bits, 15000);
  // The highest step is all that is allowed, so that a switch to it needs no keyframe.
  CHECK_INT (list[4].set.temporal, -1);
  CHECK_INT (list[4].bits, 30000);
  // All frames are needed, or keyframes.
  rates.reference_bitrate = 5000;
  CHECK_INT (weir_steps_list (&rates, (WeirLayerSet) { -1, 1, -1 }, NULL, 0, list), 3);
  CHECK_INT (list[2].set.temporal, 1);
  rates.key_bitrate = 5000;
  CHECK_INT (weir_steps_list (&rates, (WeirLayerSet) { -1, 0, -1 }, NULL, 0, list), 1);
}

static void
renditions_stand_below_the_layers (void)
{
  const WeirRendition renditions[] = { { 1, 2000000 }, { 2, 600000 }, { 3, 4600000 }, { 4, 600000 },
    { 5, 0 } };
  WeirStep list[WEIR_STEPS_MAX];
  WeirRates rates = { .n = 1, .key_bitrate = 300000, .reference_bitrate = 3000000 };

  CHECK_INT (weir_steps_list (&rates, WEIR_LAYER_SET_ALL, renditions, 5, list), 0);
  rates.layers[0].bitrate = 5000000;
  // References take more than what shows all frames.
  CHECK_INT (weir_steps_list (&rates, WEIR_LAYER_SET_ALL, renditions, 5, list), 4);
  CHECK_INT (list[0].kind, WEIR_STEP_KEYFRAMES);
  CHECK_INT (list[0].rendition, 0);
  CHECK_INT (list[1].kind, WEIR_STEP_LAYERS);
  CHECK_INT (list[1].rendition, 2);
  CHECK_INT (list[2].rendition, 1);
  CHECK_INT (list[2].bits, 2000000);
  CHECK_INT (list[3].rendition, 0);
  CHECK_INT (list[3].bits, 5000000);
  // A stream that takes less than its renditions has none.
  rates.layers[0].bitrate = 500000;
  CHECK_INT (weir_steps_list (&rates, WEIR_LAYER_SET_ALL, renditions, 5, list), 2);
  CHECK_INT (list[1].rendition, 0);
}

static void
a_reader_goes_to_a_rendition_and_back (void)
{
  static const WeirStep list[] = { { WEIR_STEP_LAYERS, { -1, -1, -1 }, 600000, 2 },
    { WEIR_STEP_LAYERS, { -1, -1, -1 }, 2000000, 1 },
    { WEIR_STEP_LAYERS, { -1, -1, -1 }, 5000000, 0 } };
  WeirStepsInput line = { .line = { .state = WEIR_ESTIMATE_CONGESTED, .bits = 1000000 },
    .key_ns = INT64_MIN };
  WeirStepsDecision out;

  weir_steps_init (&steps, WEIR_LAYER_SET_ALL, 1, START);
  out = weir_steps_decide (&steps, &line, list, 3, START);
  CHECK_INT (out.step.rendition, 2);
  line.line.state = WEIR_ESTIMATE_CLEAR;
  line.line.bits = 5600000;
  out = weir_steps_decide (&steps, &line, list, 3, START + 10 * SECOND);
  CHECK_INT (out.step.rendition, 0);
  CHECK_INT (out.reason, WEIR_STEPS_ROOM);
  // A rendition that has ended counts as the stream itself.
  steps.now = list[1];
  out = weir_steps_decide (&steps, &line, list + 2, 1, START + 11 * SECOND);
  CHECK_INT (out.step.rendition, 0);
}

int
main (void)
{
  RUN (a_congested_reader_goes_down);
  RUN (a_reader_with_more_goes_down_first);
  RUN (nothing_changes_without_an_estimate);
  RUN (a_reader_goes_up_after_a_probe);
  RUN (no_probe_comes_at_the_wrong_time);
  RUN (readers_are_probed_at_different_times);
  RUN (probes_that_fail_come_seldom);
  RUN (a_probe_that_fills_the_line_shows_what_it_carries);
  RUN (a_step_far_above_is_approached);
  RUN (a_probe_that_fills_the_queue_ends);
  RUN (bursts_as_fast_as_when_a_probe_failed_show_nothing);
  RUN (one_in_eight_is_probed);
  RUN (a_reader_that_cannot_be_probed_rises_on_trial);
  RUN (a_step_that_has_ended_counts_as_the_highest);
  RUN (steps_are_listed_by_rate);
  RUN (renditions_stand_below_the_layers);
  RUN (a_reader_goes_to_a_rendition_and_back);
  return tap_done ();
}
