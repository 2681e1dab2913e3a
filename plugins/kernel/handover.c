// SPDX-License-Identifier: LGPL-2.1-or-later
#include "handover.h"

#include <sched.h>

gboolean
weir_handover_leave (WeirHandover *self)
{
  if (!self->active)
    return FALSE;
  self->active = FALSE;
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
  return self->active;
}

void
weir_handover_expect_packet (WeirHandover *self)
{
  self->complete = FALSE;
  self->mark = (guint32) (__atomic_load_n (&self->shared->state, __ATOMIC_SEQ_CST) / RELAY_PASSED);
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
  self->complete = self->n_of_mark >= self->expected;
}
