// SPDX-License-Identifier: LGPL-2.1-or-later
#include "readers/line_choice.h"

#include "readers/sink_sample.h"

// A reader that joins gets the past faster than real time, which fills its line on purpose.
#define JOIN_TIME (2 * GST_SECOND)

static LineChoiceCounts counts;

static const gchar *const states[] = { [WEIR_ESTIMATE_CLEAR] = "clear",
  [WEIR_ESTIMATE_WARNING] = "warning",
  [WEIR_ESTIMATE_CONGESTED] = "congested" };

static const gchar *const steps[] = { [WEIR_STEP_KEYFRAMES] = "keyframes",
  [WEIR_STEP_REFERENCES] = "references",
  [WEIR_STEP_LAYERS] = "layers" };

void
line_choice_begin (LineChoice *self, Reader *reader, WeirLayerSet limit, guint32 seed, gint64 now)
{
  self->can_probe = TRUE;
  if (self->since == 0)
    self->since = now;
  weir_steps_init (&self->steps, limit, seed, now);
  reader_restrict (reader, 0);
}

gboolean
line_choice_read (LineChoice *self, Reader *reader, gint64 now)
{
  WeirEstimateView view;

  if (!reader_read_estimate (reader, now, &view))
    return FALSE;
  self->line = view;
  self->known |= view.bits > 0;
  return self->known;
}

// Returns the rendition that the reader has; 0: the stream that it has asked for.
static guint
get_rendition (const LineChoice *self)
{
  return self->renditions ? renditions_get_id (self->renditions) : 0;
}

gboolean
line_choice_is_open (const LineChoice *self, WeirLayerSet limit)
{
  return self->line.state == WEIR_ESTIMATE_CONGESTED || self->steps.now.kind != WEIR_STEP_LAYERS
         || self->steps.now.rendition != 0 || get_rendition (self) != 0
         || !weir_layer_set_equal (self->steps.now.set, limit);
}

// ---- deciding ----

// Returns the state of a step, an index in reader_state_names.
static guint
find_restriction (WeirStepKind kind)
{
  return kind == WEIR_STEP_LAYERS ? 0 : sink_sample_find_state (steps[kind]);
}

static void
set_step (Reader *reader, const WeirStep *step)
{
  reader_set_layers (reader, step->set);
  reader_restrict (reader, find_restriction (step->kind));
}

// A reader that goes down to another rendition gets keyframes only until that is there: its line
// carries no more.
static void
take_step (LineChoice *self, Reader *reader)
{
  const WeirStep *step = &self->steps.now;

  if (step->rendition == get_rendition (self))
    set_step (reader, step);
  else if (self->steps.fell)
    reader_restrict (reader, find_restriction (WEIR_STEP_KEYFRAMES));
}

// Lets the reader have the rendition of its step. Without a change this makes sure that it still
// has it.
static void
follow_step (LineChoice *self, Reader *reader, gint64 now)
{
  const WeirStep *step = &self->steps.now;
  guint before = get_rendition (self);

  if (self->renditions && (before != 0 || step->rendition != 0)
      && renditions_go (self->renditions, reader, step->rendition, now)
      && before != step->rendition)
    set_step (reader, step);
}

static void
note_change (const WeirSteps *now)
{
  if (now->reason == WEIR_STEPS_DELAY || now->reason == WEIR_STEPS_LOSS)
    counts.down++;
  else
    counts.up++;
}

static gboolean
is_same (const WeirStep *a, const WeirStep *b)
{
  return a->kind == b->kind && a->rendition == b->rendition
         && weir_layer_set_equal (a->set, b->set);
}

void
line_choice_decide (LineChoice *self, Reader *reader, WeirLayerSet limit, const WeirRates *rates,
    gboolean others, gint64 now)
{
  WeirStepsInput input = { .line = self->line,
    .key_ns = rates->key_ns ? rates->key_ns : INT64_MIN,
    .can_probe = self->can_probe,
    .others = others };
  WeirRendition renditions[WEIR_RENDITIONS_MAX];
  gsize n_renditions = self->renditions ? renditions_list (self->renditions, now, renditions) : 0;
  WeirStep list[WEIR_STEPS_MAX];
  size_t n = weir_steps_list (rates, limit, renditions, n_renditions, list);
  WeirSteps before = self->steps;
  WeirStepsDecision decision;

  if (now - self->since < (gint64) JOIN_TIME)
    return;
  decision = weir_steps_decide (&self->steps, &input, list, n, now);
  if (!is_same (&before.now, &decision.step)) {
    take_step (self, reader);
    note_change (&self->steps);
  }
  follow_step (self, reader, now);
  counts.failed += self->steps.n_failed - before.n_failed;
  if (decision.ends_probe)
    reader_probe (reader, 0, 0);
  if (decision.probe_bits == 0)
    return;
  if (reader_probe (reader, decision.probe_bits, (guint) (decision.probe_ns / GST_MSECOND))) {
    counts.probes++;
  } else {
    self->can_probe = FALSE;
    weir_steps_cancel_probe (&self->steps);
  }
}

gboolean
line_choice_is_probing (const LineChoice *self)
{
  return weir_steps_is_probing (&self->steps);
}

// ---- figures ----

const gchar *
line_choice_get_state (const LineChoice *self)
{
  return states[self->line.state];
}

const gchar *
line_choice_get_step (const LineChoice *self)
{
  return self->steps.now.rendition != 0 ? "rendition" : steps[self->steps.now.kind];
}

const gchar *
line_choice_get_reason (const LineChoice *self)
{
  return weir_steps_reason_name (self->steps.reason);
}

const gchar *
line_choice_get_rendition (const LineChoice *self)
{
  return self->renditions ? renditions_get_query (self->renditions) : NULL;
}

void
line_choice_count (LineChoiceCounts *out)
{
  *out = counts;
}
