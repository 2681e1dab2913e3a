// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Decides how much of a stream one reader gets, by the estimate of its line (net/estimate.h).
//
// - Down: while the line is congested, to the highest step that takes at most 0.9 of the estimate:
//   at once if the line carries less than half or loses a quarter, else after at most 1.3 s. A
//   reader with more is faster, so that readers on one line converge.
// - Up: to the highest step of which the line was seen to carry 1.1 times the rate. To see it, a
//   probe is asked for: packets beside the media, for a short time. It fails, and is ended, when
//   packets begin to wait. A reader that cannot be probed goes up by one step on trial.
// - A rise or a probe waits 3 s after a change, and after a probe or trial that failed; from the
//   seventh failure in a row on each wait is 1.5 times as long as the one before, up to 2 min,
//   unless packets that are sent together begin to come much faster. Each wait is up to 20 %
//   shorter or longer, at random, so that readers do not move together. None comes within 2 s of a
//   keyframe, or within a quarter of the time between keyframes if that is shorter: a keyframe
//   looks like a queue. None comes unless the line is clear.
//
// A WeirSteps belongs to one thread at a time. It reads no clock and draws no random number but
// from its seed, so the same inputs give the same decisions.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/estimate.h"
#include "svc/adapt.h"

// What a reader gets, from little to much.
typedef enum {
  WEIR_STEP_KEYFRAMES,  // of the lowest layers
  WEIR_STEP_REFERENCES, // of the lowest layers, without frames that no other one refers to
  WEIR_STEP_LAYERS      // all frames of a layer set
} WeirStepKind;

typedef struct {
  WeirStepKind kind;
  WeirLayerSet set;
  uint64_t bits;      // bit/s
  unsigned rendition; // 0: the stream itself; else the same pictures, encoded with another rate
} WeirStep;

typedef struct {
  unsigned id; // not 0, and of no other one
  uint64_t bits;
} WeirRendition;

#define WEIR_RENDITIONS_MAX 8
#define WEIR_STEPS_MAX (WEIR_ADAPT_STEPS + WEIR_RENDITIONS_MAX + 2)

// Lists the steps of a stream within `limit`, the lowest first; each takes more than the one
// before. Renditions, WEIR_RENDITIONS_MAX at most and in any order, stand below the stream's own
// layers: one that takes no less than these, or than another one, is no step. `steps` has room for
// WEIR_STEPS_MAX. Returns how many there are: 0 as long as no rate of the stream is known.
size_t weir_steps_list (const WeirRates *rates, WeirLayerSet limit, const WeirRendition *renditions,
    size_t n_renditions, WeirStep *steps);

typedef enum {
  WEIR_STEPS_BEGUN, // with all that is allowed
  WEIR_STEPS_DELAY, // the queue delay rises
  WEIR_STEPS_LOSS,
  WEIR_STEPS_ROOM,  // the line was seen to carry more
  WEIR_STEPS_TRIAL, // nothing speaks against more
} WeirStepsReason;

// Returns the reason in words.
const char *weir_steps_reason_name (WeirStepsReason reason);

// What decides.
typedef struct {
  WeirEstimateView line;
  int64_t key_ns; // when the last keyframe came; INT64_MIN: not known
  bool can_probe;
  bool others; // another reader behind the same line is probed now
} WeirStepsInput;

typedef struct {
  WeirStep step; // that the reader gets from now on
  WeirStepsReason reason;
  // Unless 0: fill the line up to this many bits a second, media included, for so long.
  uint64_t probe_bits;
  int64_t probe_ns;
  bool ends_probe; // the probe under way is to end: it fills the queue
} WeirStepsDecision;

typedef struct {
  WeirStep now;
  WeirStepsReason reason;
  uint32_t random;
  unsigned n_failures;  // probes and trials in a row that failed
  bool fell;            // the last change was a step down
  int64_t moved_ns;     // when it was
  int64_t down_ns;      // when its patience ends; INT64_MAX: it has no reason to go down
  int64_t rise_ns;      // earliest time of the next probe or trial
  uint64_t usual_burst; // the highest rate of bursts in the first seconds after a fall
  uint64_t failed_bits; // what the line carried at the last failure
  bool rose;            // the last change was a rise that has not failed
  int64_t trial_until;  // it fails if the line is congested before
  uint64_t probe_bits;  // of the last probe
  uint64_t probed_bits; // the rate that the probe under way shall show; 0: none is
  int64_t probe_until;  // when the feedback on the probe has come
  int64_t probe_least;  // earliest time at which it has shown that
  unsigned n_shown;     // probes in a row that have shown room
  int64_t key_ns;       // of the last keyframe
  int64_t key_distance; // between the last two
  uint64_t n_probes, n_failed;
} WeirSteps;

// Starts with all of `limit`. `seed` should differ from reader to reader.
void weir_steps_init (WeirSteps *self, WeirLayerSet limit, uint32_t seed, int64_t now);

// Decides at `now`, in ns, with the steps of weir_steps_list(). Call every 100 ms or so.
WeirStepsDecision weir_steps_decide (WeirSteps *self, const WeirStepsInput *input,
    const WeirStep *steps, size_t n_steps, int64_t now);

// Tells that the probe that was just asked for is not possible.
void weir_steps_cancel_probe (WeirSteps *self);

// Reports whether a probe is under way.
bool weir_steps_is_probing (const WeirSteps *self);

// Returns how many of `n_readers` behind one address, which may share a line, are probed at the
// same time: one in eight, and at least one. Of many, the probe of one takes a small part of the
// line.
size_t weir_steps_together (size_t n_readers);
