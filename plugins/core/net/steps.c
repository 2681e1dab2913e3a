// SPDX-License-Identifier: LGPL-2.1-or-later
#include "net/steps.h"

#include "run/random.h"

#define MS INT64_C (1000000)
#define SECOND (1000 * MS)

#define WAIT (3 * SECOND)
#define WAIT_EVEN 6 // failures
#define WAIT_MOST (120 * SECOND)
#define LOSS_URGENT 250 // of 1000 packets
#define PATIENCE SECOND
#define PATIENCE_SPREAD 300 // ms
#define TRIAL (5 * SECOND)
#define KEY_REST (2 * SECOND)
#define PROBE (300 * MS)        // the estimate needs two whole groups of 100 ms
#define PROBE_FIRST (500 * MS)  // a line may pass some packets at once before it is full
#define PROBE_QUEUE (20 * MS)   // more shows that the line is full
#define PROBE_TOLD (200 * MS)   // until feedback shows whether its packets wait
#define PROBE_ANSWER (500 * MS) // until the feedback on its last packet has come
#define BURST_USUAL (4 * SECOND)
#define TOGETHER 8    // readers of whom one is probed at a time
#define PROBES_WEAK 2 // the first ones of a row
#define PROBE_AIM 2   // a probe aims at most at this multiple of what is known

// ---- the list ----

// Adds a step, if it takes less than `below`, by enough to save something.
static size_t
add (WeirStep *steps, size_t n, WeirStepKind kind, double bitrate, double below)
{
  const WeirLayerSet lowest = { 0, 0, 0 };

  if (bitrate < 1 || bitrate >= below || (n > 0 && bitrate <= (double) steps[n - 1].bits))
    return n;
  steps[n] = (WeirStep) { kind, lowest, (uint64_t) bitrate, 0 };
  return n + 1;
}

// Returns the rendition that takes least of those that take more than `above`, or NULL.
static const WeirRendition *
next_rendition (const WeirRendition *renditions, size_t n, uint64_t above)
{
  const WeirRendition *next = NULL;

  for (size_t i = 0; i < n; i++) {
    if (renditions[i].bits > above && (!next || renditions[i].bits < next->bits))
      next = &renditions[i];
  }
  return next;
}

size_t
weir_steps_list (const WeirRates *rates, WeirLayerSet limit, const WeirRendition *renditions,
    size_t n_renditions, WeirStep *steps)
{
  WeirAdaptStep sets[WEIR_ADAPT_STEPS];
  size_t n_sets = weir_adapt_ladder (rates, limit, sets), n = 0;
  const WeirRendition *next = next_rendition (renditions, n_renditions, 0);
  double own, least;

  if (n_sets == 0 || sets[n_sets - 1].bitrate < 1)
    return 0;
  own = sets[0].bitrate;
  least = next && (double) next->bits < own ? (double) next->bits : own;
  n = add (steps, n, WEIR_STEP_KEYFRAMES, rates->key_bitrate, least);
  n = add (steps, n, WEIR_STEP_REFERENCES, rates->reference_bitrate,
      least < own * 0.98 ? least : own * 0.98);
  for (; next && (double) next->bits < own * 0.9;
      next = next_rendition (renditions, n_renditions, next->bits))
    steps[n++] = (WeirStep) { WEIR_STEP_LAYERS, limit, next->bits, next->id };
  for (size_t i = 0; i < n_sets; i++)
    steps[n++] = (WeirStep) { WEIR_STEP_LAYERS, i + 1 < n_sets ? sets[i].set : limit,
      (uint64_t) sets[i].bitrate, 0 };
  return n;
}

static bool
is_step (const WeirStep *a, const WeirStep *b)
{
  return a->kind == b->kind && a->rendition == b->rendition
         && (a->kind != WEIR_STEP_LAYERS || weir_layer_set_equal (a->set, b->set));
}

// Returns the reader's step. One that is no longer there, such as of a layer that has ended, counts
// as the highest one.
static size_t
find_now (const WeirSteps *self, const WeirStep *steps, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (is_step (&self->now, &steps[i]))
      return i;
  }
  return n - 1;
}

// Returns the highest step whose rate is at most `bits`, or the lowest step.
static size_t
highest_within (const WeirStep *steps, size_t n, uint64_t bits)
{
  size_t at = 0;

  while (at + 1 < n && steps[at + 1].bits <= bits)
    at++;
  return at;
}

const char *
weir_steps_reason_name (WeirStepsReason reason)
{
  static const char *const names[] = { [WEIR_STEPS_BEGUN] = "all that is allowed",
    [WEIR_STEPS_DELAY] = "the queue on its line grows",
    [WEIR_STEPS_LOSS] = "its line loses packets",
    [WEIR_STEPS_ROOM] = "its line has carried more",
    [WEIR_STEPS_TRIAL] = "its line may carry more" };

  return names[reason];
}

// ---- waiting ----

static void
wait (WeirSteps *self, int64_t now)
{
  int64_t time = WAIT;

  for (unsigned i = WAIT_EVEN; i < self->n_failures && time < WAIT_MOST; i++)
    time += time / 2;
  time = time < WAIT_MOST ? time : WAIT_MOST;
  self->rise_ns = now + time * (80 + (int64_t) (weir_random_draw (&self->random) % 41)) / 100;
}

static void
fail (WeirSteps *self, const WeirStepsInput *input, int64_t now)
{
  if (self->failed_bits == 0)
    self->failed_bits = input->line.full_bits ? input->line.full_bits : input->line.bits;
  // Bursts that come as fast as these show no room.
  if (input->line.burst_bits > self->usual_burst)
    self->usual_burst = input->line.burst_bits;
  self->n_failures++;
  self->n_failed++;
  self->probed_bits = 0;
  self->n_shown = 0;
  self->rose = false;
  wait (self, now);
}

// Ends the wait after failures if packets that are sent together come much faster than in the first
// seconds after the fall: the line has changed.
static void
note_burst (WeirSteps *self, uint64_t burst_bits, int64_t now)
{
  uint64_t usual = self->usual_burst > self->failed_bits ? self->usual_burst : self->failed_bits;

  if (self->fell && now < self->moved_ns + BURST_USUAL) {
    self->usual_burst = burst_bits > self->usual_burst ? burst_bits : self->usual_burst;
  } else if (self->n_failures > 0 && burst_bits >= usual + usual / 2) {
    self->n_failures = 0;
    self->rise_ns = now;
  }
}

static void
note_key (WeirSteps *self, int64_t key_ns)
{
  if (key_ns == self->key_ns)
    return;
  if (self->key_ns != INT64_MIN && key_ns > self->key_ns)
    self->key_distance = key_ns - self->key_ns;
  self->key_ns = key_ns;
}

// Reports whether a probe would meet a keyframe: the last one, or the next one if they come evenly.
static bool
is_near_key (const WeirSteps *self, int64_t now)
{
  int64_t distance = self->key_distance, since;
  int64_t rest = distance / 4 < KEY_REST ? distance / 4 : KEY_REST;

  if (self->key_ns == INT64_MIN)
    return false;
  since = now - self->key_ns;
  return since < rest
         || (since < distance && since > distance - PROBE_FIRST && since > rest + PROBE);
}

// ---- down and up ----

static void
move (WeirSteps *self, const WeirStep *to, WeirStepsReason reason, int64_t now)
{
  if (to->bits < self->now.bits && !self->fell)
    self->usual_burst = 0;
  self->fell = to->bits < self->now.bits;
  self->moved_ns = now;
  self->now = *to;
  self->reason = reason;
  wait (self, now);
}

// Reports whether a reader waits before it goes down from a step. One that has less waits longer,
// so that readers behind one line converge, and others are faster by chance, so that not all go.
// Nobody waits if the line carries less than half.
static bool
is_patient (WeirSteps *self, const WeirStepsInput *input, const WeirStep *steps, size_t n,
    size_t at, int64_t now)
{
  uint64_t top = steps[n - 1].bits, bits = steps[at].bits;

  if (self->fell && now < self->moved_ns + PATIENCE)
    return false;
  if (self->down_ns == INT64_MAX)
    self->down_ns = now + PATIENCE * (int64_t) ((top - bits) * 1000 / top) / 1000
                    + (int64_t) (weir_random_draw (&self->random) % PATIENCE_SPREAD) * MS;
  return now < self->down_ns && input->line.bits >= bits / 2 && input->line.loss < LOSS_URGENT;
}

static void
rise (WeirSteps *self, const WeirStep *to, WeirStepsReason reason, int64_t now)
{
  self->probed_bits = self->failed_bits = 0;
  self->n_shown = 0;
  self->rose = true;
  self->trial_until = now + TRIAL;
  move (self, to, reason, now);
}

static void
go_down (WeirSteps *self, const WeirStepsInput *input, const WeirStep *steps, size_t n, size_t at,
    int64_t now)
{
  size_t to = highest_within (steps, n, input->line.bits * 9 / 10);

  if (self->probed_bits > 0 && to > at) {
    rise (self, &steps[to], WEIR_STEPS_ROOM, now); // the probe filled the line, which carries more
    return;
  }
  if (self->probed_bits > 0 || (self->rose && now < self->trial_until))
    fail (self, input, now);
  if (to >= at || is_patient (self, input, steps, n, at, now))
    return;
  move (self, &steps[to],
      input->line.loss >= 100 && input->line.queue_ns < 50 * MS ? WEIR_STEPS_LOSS
                                                                : WEIR_STEPS_DELAY,
      now);
  self->failed_bits = input->line.bits;
  self->down_ns = INT64_MAX;
}

// Returns the highest rate of the next probe. While the reader rises that is twice what is known.
// Else it is approached by several probes. The first ones are weak, so that a line that does not
// carry more has no long queue by them, also if it passes some packets at once.
static uint64_t
find_most (const WeirSteps *self, uint64_t known)
{
  if (self->rose)
    return known * PROBE_AIM;
  if (self->n_shown >= PROBES_WEAK)
    return self->probe_bits * PROBE_AIM;
  if (self->n_shown > 0)
    return self->probe_bits * 5 / 4;
  return (self->failed_bits > 0 && self->failed_bits < known ? self->failed_bits : known) * 5 / 4;
}

// Aims at the step above what is known, or while the reader rises at the highest one within reach.
static void
probe (WeirSteps *self, uint64_t known, const WeirStep *steps, size_t n, size_t at, int64_t now,
    WeirStepsDecision *out)
{
  size_t seen = highest_within (steps, n, known * 10 / 11);
  size_t far = highest_within (steps, n, known * PROBE_AIM * 10 / 11);
  size_t aim = (seen > at ? seen : at) + 1;
  uint64_t most = find_most (self, known), rate;
  bool weak = !self->rose && self->n_shown < PROBES_WEAK;

  if (self->rose && far > aim)
    aim = far;
  // A fifth above the step: media and probe vary.
  rate = steps[aim].bits * 6 / 5;
  rate = rate < most ? rate : most;
  self->probe_bits = rate;
  self->probed_bits = rate * 11 / 12;
  out->probe_bits = rate;
  out->probe_ns = weak && self->n_shown == 0 ? PROBE_FIRST : PROBE;
  self->probe_least = weak ? now + out->probe_ns + PROBE_TOLD : now;
  self->probe_until = now + out->probe_ns + PROBE_ANSWER;
  self->n_probes++;
}

// Takes what a probe has shown, if it is over.
static void
judge_probe (WeirSteps *self, const WeirStepsInput *input, const WeirStep *steps, size_t at,
    size_t seen, int64_t now, WeirStepsDecision *out)
{
  bool shown = input->line.bits >= self->probed_bits && now >= self->probe_least;

  if (input->line.queue_ns > PROBE_QUEUE && seen <= at) {
    out->ends_probe = true;
    fail (self, input, now);
    return;
  }
  if (now < self->probe_until && !shown)
    return;
  if (seen > at) {
    self->n_failures = 0;
    rise (self, &steps[seen], WEIR_STEPS_ROOM, now);
  } else if (shown) {
    self->n_shown++;
    self->probed_bits = 0; // the next probe follows, with a higher rate
    self->rise_ns = now;
  } else {
    fail (self, input, now);
  }
}

static void
consider_rise (WeirSteps *self, const WeirStepsInput *input, const WeirStep *steps, size_t n,
    size_t at, int64_t now, WeirStepsDecision *out)
{
  size_t seen = highest_within (steps, n, input->line.bits * 10 / 11);
  bool can_probe = input->can_probe && !input->others && seen + 1 < n;

  note_burst (self, input->line.burst_bits, now);
  if (self->probed_bits > 0) {
    judge_probe (self, input, steps, at, seen, now, out);
    return;
  }
  if (input->line.state != WEIR_ESTIMATE_CLEAR || at + 1 == n || now < self->rise_ns
      || is_near_key (self, now))
    return;
  if (can_probe) {
    probe (self, input->line.bits, steps, n, at, now, out);
  } else if (seen > at) {
    rise (self, &steps[seen], WEIR_STEPS_ROOM, now);
  } else if (!input->can_probe) {
    if (self->rose && now >= self->trial_until)
      self->n_failures = 0; // the last rise has held
    rise (self, &steps[at + 1], WEIR_STEPS_TRIAL, now);
  }
}

void
weir_steps_init (WeirSteps *self, WeirLayerSet limit, uint32_t seed, int64_t now)
{
  *self = (WeirSteps) { .now = { WEIR_STEP_LAYERS, limit, 0 },
    .random = seed ? seed : 1,
    .key_ns = INT64_MIN,
    .key_distance = 2 * KEY_REST,
    .down_ns = INT64_MAX };
  wait (self, now);
}

WeirStepsDecision
weir_steps_decide (WeirSteps *self, const WeirStepsInput *input, const WeirStep *steps,
    size_t n_steps, int64_t now)
{
  WeirStepsDecision out = { 0 };
  size_t at;

  note_key (self, input->key_ns);
  if (n_steps > 0 && input->line.bits > 0) {
    at = find_now (self, steps, n_steps);
    self->now = steps[at];
    if (input->line.state != WEIR_ESTIMATE_CONGESTED)
      self->down_ns = INT64_MAX;
    if (input->line.state == WEIR_ESTIMATE_CONGESTED)
      go_down (self, input, steps, n_steps, at, now);
    else
      consider_rise (self, input, steps, n_steps, at, now, &out);
  }
  out.step = self->now;
  out.reason = self->reason;
  return out;
}

void
weir_steps_cancel_probe (WeirSteps *self)
{
  self->probed_bits = 0;
}

bool
weir_steps_is_probing (const WeirSteps *self)
{
  return self->probed_bits > 0;
}

size_t
weir_steps_together (size_t n_readers)
{
  return n_readers < 2 * TOGETHER ? 1 : n_readers / TOGETHER;
}
