// SPDX-License-Identifier: LGPL-2.1-or-later
// Replays what a real reader told of its line (tests/data/line.trace, README.md there): the
// estimate and the steps decide as they did then.
#include <inttypes.h>
#include <stdlib.h>

#include "net/steps.h"
#include "tap.h"

#define US INT64_C (1000)
#define START (INT64_C (1000000) * US)
#define LONGEST 4096

static const char *path;

static WeirEstimate *estimate;
static WeirEstimateView view;
static WeirSteps steps;
static int64_t now = START;
static uint16_t number;
static unsigned n_looks, n_moves, n_probes, n_ended;

// "begin SEED NUMBER": a reader with all layers, whose first packet has this number.
static void
begin (const char *words)
{
  uint32_t seed;

  CHECK (sscanf (words, "%" SCNu32 " %" SCNu16, &seed, &number) == 2);
  estimate = weir_estimate_new (WEIR_ESTIMATE_RING);
  weir_steps_init (&steps, WEIR_LAYER_SET_ALL, seed, now);
}

// "s SIZE": a packet is sent.
static void
take_sent (const char *words)
{
  weir_estimate_sent (estimate, number++, strtoul (words, NULL, 10), now);
}

// "f HEX": RTCP comes.
static void
take_rtcp (const char *words)
{
  static WeirFeedback feedback;
  uint8_t rtcp[LONGEST / 2];
  size_t n = 0;
  unsigned byte;
  WeirBytes compound;

  for (; sscanf (words + 2 * n, "%2x", &byte) == 1; n++)
    rtcp[n] = (uint8_t) byte;
  compound = weir_bytes (rtcp, n);
  while (weir_feedback_next (&compound, &feedback) == 1)
    weir_estimate_feedback (estimate, &feedback, now);
  weir_estimate_view (estimate, now);
}

// Reads " KIND SPATIAL TEMPORAL QUALITY BITS" behind `*words`.
static bool
read_step (const char **words, WeirStep *step)
{
  int kind, spatial, temporal, quality, n;

  if (sscanf (*words, "%d %d %d %d %" SCNu64 "%n", &kind, &spatial, &temporal, &quality,
          &step->bits, &n)
      != 5)
    return false;
  *words += n;
  step->kind = (WeirStepKind) kind;
  step->set = (WeirLayerSet) { (int8_t) spatial, (int8_t) temporal, (int8_t) quality };
  step->rendition = 0;
  return true;
}

// "d KEY STEP... = STEP REASON PROBE-BITS PROBE-MS ENDS": what was decided. KEY is when the last
// keyframe came, in us of the trace, or -1.
static void
decide (const char *words)
{
  WeirStepsInput input = { .line = view, .key_ns = INT64_MIN, .can_probe = true };
  WeirStep list[WEIR_STEPS_MAX], then = { 0 };
  WeirStepsDecision out;
  int64_t key, probe_ms;
  size_t n_steps = 0;
  uint64_t probe_bits;
  int reason, ends, n;
  WeirStep before = steps.now;

  CHECK (sscanf (words, "%" SCNd64 "%n", &key, &n) == 1);
  if (key >= 0)
    input.key_ns = START + key * US;
  for (words += n; n_steps < WEIR_STEPS_MAX && read_step (&words, &list[n_steps]);)
    n_steps++;
  words = strchr (words, '=') + 1;
  CHECK (read_step (&words, &then));
  CHECK (
      sscanf (words, "%d %" SCNu64 " %" SCNd64 " %d", &reason, &probe_bits, &probe_ms, &ends) == 4);
  out = weir_steps_decide (&steps, &input, list, n_steps, now);
  CHECK_INT (out.step.kind, then.kind);
  CHECK (weir_layer_set_equal (out.step.set, then.set));
  CHECK_INT (out.step.bits, then.bits);
  CHECK_INT (out.reason, reason);
  CHECK_INT (out.probe_bits, probe_bits);
  CHECK_INT (out.probe_ns, probe_ms * 1000 * US);
  CHECK_INT (out.ends_probe, ends);
  n_looks++;
  n_moves += out.step.kind != before.kind || !weir_layer_set_equal (out.step.set, before.set);
  n_probes += out.probe_bits > 0;
  n_ended += out.ends_probe;
}

static void
a_recorded_reader_gets_the_same_again (void)
{
  FILE *file = fopen (path, "r");
  char line[LONGEST];

  CHECK (file);
  while (file && fgets (line, sizeof line, file)) {
    char what[8];
    int64_t us;
    int at = 0;

    // "US WHAT...": so long after the line before.
    if (line[0] == '#' || sscanf (line, "%" SCNd64 " %7s %n", &us, what, &at) != 2)
      continue;
    now += us * US;
    if (strcmp (what, "begin") == 0)
      begin (line + at);
    else if (strcmp (what, "s") == 0)
      take_sent (line + at);
    else if (strcmp (what, "f") == 0)
      take_rtcp (line + at);
    else if (strcmp (what, "v") == 0)
      view = weir_estimate_view (estimate, now);
    else
      decide (line + at);
  }
  if (file)
    fclose (file);
  printf (
      "# %u looks, %u moves, %u probes, %u of them ended\n", n_looks, n_moves, n_probes, n_ended);
  // It went down and up again.
  CHECK (n_looks > 100 && n_moves >= 3 && n_probes > 3 && n_ended > 0);
  weir_estimate_free (estimate);
}

int
main (int argc, char **argv)
{
  path = argc > 1 ? argv[1] : "";
  RUN (a_recorded_reader_gets_the_same_again);
  return tap_done ();
}
