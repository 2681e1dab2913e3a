// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Jittered exponential back-off: 0.5 s doubling to 15 s, each wait drawn from the upper half of its
// range, so that a hundred proxies do not return to a camera in step.

#include <glib.h>

#define BACKOFF_MIN_MS 500
#define BACKOFF_MAX_MS 15000

// Milliseconds to wait before the next try after `n_failures` in a row (1 or more); `random` is
// uniform in [0, 1).
static inline guint
backoff_ms (guint n_failures, gdouble random)
{
  guint full = BACKOFF_MIN_MS;

  for (guint i = 1; i < n_failures && full < BACKOFF_MAX_MS; i++)
    full *= 2;
  full = MIN (full, BACKOFF_MAX_MS);
  return full / 2 + (guint) (random * (full / 2));
}
