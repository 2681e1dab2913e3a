// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Exponential back-off with jitter: the wait doubles from 0.5 s to 15 s, and each wait is drawn
// from the upper half of its range, so that a hundred proxies do not reconnect to a camera in step.

#include <glib.h>

#define BACKOFF_MIN_MS 500
#define BACKOFF_MAX_MS 15000

// Returns the time to wait before the next attempt, in ms, from 250 to 15000. `n_failures` (1 or
// more) is the number of failures in a row; `random` is uniform in [0, 1).
static inline guint
backoff_ms (guint n_failures, gdouble random)
{
  guint full = BACKOFF_MIN_MS;

  for (guint i = 1; i < n_failures && full < BACKOFF_MAX_MS; i++)
    full *= 2;
  full = MIN (full, BACKOFF_MAX_MS);
  return full / 2 + (guint) (random * (full / 2));
}
