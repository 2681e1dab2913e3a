// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Limits how often the log reports a recurring event: a burst of lines at once, then one line in
// each interval, which counts the lines left out.

#include <glib.h>

typedef struct {
  guint burst;          // lines allowed at once
  guint interval_ms;    // time after which one more line is allowed
  gint64 due_us;        // when the whole burst is allowed again, monotonic; 0 at first
  guint64 n_suppressed; // lines left out since the last one
} LogLimit;

// For failures of one object that retries.
#define LOG_LIMIT_FAILURES ((LogLimit) { .burst = 8, .interval_ms = 60 * 1000 })

// Reports whether a line is allowed at `now_us` (monotonic), and counts it. Sets `*n_suppressed` to
// the number of lines left out before it. The caller serialises the calls for one limit.
static inline gboolean
log_limit_pass (LogLimit *self, gint64 now_us, guint64 *n_suppressed)
{
  gint64 interval_us = (gint64) self->interval_ms * 1000;

  if (self->due_us < now_us)
    self->due_us = now_us;
  if (self->due_us - now_us > (gint64) (self->burst - 1) * interval_us) {
    self->n_suppressed++;
    return FALSE;
  }
  self->due_us += interval_us;
  *n_suppressed = self->n_suppressed;
  self->n_suppressed = 0;
  return TRUE;
}
