// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// How often the log tells of what can happen again and again: a few times at once, and then now and
// then, with the number of times between.

#include <glib.h>

typedef struct {
  guint burst;       // so many at once
  guint interval_ms; // and one more each
  gint64 due_us;     // when all would be allowed again; 0 at first
  guint64 n_unsaid;
} LogLimit;

// Of one thing that fails, and tries again.
#define LOG_LIMIT_FAILURES ((LogLimit) { .burst = 8, .interval_ms = 60 * 1000 })

// May it be said at `now` (us, monotonic)? Then `*n_unsaid` are the times since the last that it
// was not. Not for two threads at once.
static inline gboolean
log_limit_pass (LogLimit *self, gint64 now_us, guint64 *n_unsaid)
{
  gint64 interval_us = (gint64) self->interval_ms * 1000;

  if (self->due_us < now_us)
    self->due_us = now_us;
  if (self->due_us - now_us > (gint64) (self->burst - 1) * interval_us) {
    self->n_unsaid++;
    return FALSE;
  }
  self->due_us += interval_us;
  *n_unsaid = self->n_unsaid;
  self->n_unsaid = 0;
  return TRUE;
}
