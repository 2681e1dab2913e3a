// SPDX-License-Identifier: LGPL-2.1-or-later
#include "handover.h"

#include <sched.h>

#define JUDGE_NS G_GINT64_CONSTANT (1000000000)

// Returns the mark of the last packet that the program has passed.
static guint32
get_passed (const WeirHandover *self)
{
  return (guint32) (__atomic_load_n (&self->shared->state, __ATOMIC_SEQ_CST) / RELAY_PASSED);
}

gboolean
weir_handover_leave (WeirHandover *self)
{
  if (!self->active)
    return FALSE;
  self->active = self->has_handled = FALSE;
  self->since_ns = 0;
  __atomic_fetch_and (&self->shared->state, ~RELAY_ACTIVE, __ATOMIC_SEQ_CST);
  while (__atomic_load_n (&self->shared->running, __ATOMIC_SEQ_CST) > 0)
    sched_yield ();
  return TRUE;
}

gboolean
weir_handover_enter (WeirHandover *self)
{
  guint64 state;

  if (!self->ready || self->active || !self->complete)
    return FALSE;
  state = __atomic_load_n (&self->shared->state, __ATOMIC_SEQ_CST);
  self->active = (guint32) (state / RELAY_PASSED) == self->mark
                 && __atomic_compare_exchange_n (&self->shared->state, &state, state | RELAY_ACTIVE,
                     FALSE, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  if (self->active) {
    self->dropped = self->dropping;
    self->dropping = FALSE;
  }
  return self->active;
}

void
weir_handover_expect_packet (WeirHandover *self)
{
  self->complete = FALSE;
  self->mark = get_passed (self);
}

gboolean
weir_handover_drops (WeirHandover *self, gint64 now_ns)
{
  guint32 behind;

  if (!self->ready || self->active)
    return FALSE;
  if (self->dropped && self->has_handled)
    self->dropping = TRUE;
  if (self->dropping || (self->since_ns != 0 && now_ns - self->since_ns < JUDGE_NS))
    return self->dropping;
  behind = get_passed (self) - self->mark;
  self->dropping = self->since_ns != 0 && behind >= self->behind - self->behind / 4;
  self->since_ns = now_ns;
  self->behind = behind;
  return self->dropping;
}

void
weir_handover_note_empty (WeirHandover *self)
{
  self->since_ns = 0;
}

// Packets of one message have the same mark. If some were lost on their way, the next message
// completes.
void
weir_handover_note_mark (WeirHandover *self, guint32 mark)
{
  if (mark != self->mark) {
    self->expected = mark - self->mark;
    self->mark = mark;
    self->n_of_mark = 0;
  }
  self->n_of_mark++;
  self->has_handled = TRUE;
  self->complete = self->n_of_mark >= self->expected;
}
