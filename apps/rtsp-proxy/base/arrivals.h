// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// When packets arrived, and the longest time between two of them lately, from which a caller judges
// whether a silence is one. Any thread may call any function: threads that note packets at the same
// time may lose a gap between them, but not a long one.

#include <glib.h>

#define ARRIVALS_SPAN G_GINT64_CONSTANT (5000000000)        // ns
#define ARRIVALS_KNOWN_AFTER G_GINT64_CONSTANT (2000000000) // ns

// All in ns, atomic. Zero-initialised.
typedef struct {
  gint64 first, last; // 0: none
  gint64 since;       // where the present span begins
  gint64 longest;     // longest gap in the present span
  gint64 before;      // and in the span before it
} Arrivals;

#define ARRIVALS_GET(field) __atomic_load_n (&(field), __ATOMIC_RELAXED)
#define ARRIVALS_SET(field, value) __atomic_store_n (&(field), (value), __ATOMIC_RELAXED)

// Notes a packet that arrived at `now` (ns, monotonic).
static inline void
arrivals_note (Arrivals *self, gint64 now)
{
  gint64 last = __atomic_exchange_n (&self->last, now, __ATOMIC_RELAXED);

  if (last == 0) {
    ARRIVALS_SET (self->since, now);
    ARRIVALS_SET (self->first, now);
  } else if (now - ARRIVALS_GET (self->since) > ARRIVALS_SPAN) {
    ARRIVALS_SET (self->before, ARRIVALS_GET (self->longest));
    ARRIVALS_SET (self->longest, now - last);
    ARRIVALS_SET (self->since, now);
  } else if (now - last > ARRIVALS_GET (self->longest)) {
    ARRIVALS_SET (self->longest, now - last);
  }
}

static inline gint64
arrivals_get_last (const Arrivals *self)
{
  return ARRIVALS_GET (self->last);
}

// Returns the longest time between two packets in the last 5 to 10 s, or since the last packet
// before them; 0 if fewer than 2 s are known.
static inline gint64
arrivals_get_longest_gap (const Arrivals *self)
{
  gint64 longest = MAX (ARRIVALS_GET (self->longest), ARRIVALS_GET (self->before));

  if (arrivals_get_last (self) - ARRIVALS_GET (self->first) < ARRIVALS_KNOWN_AFTER)
    return 0;
  return MAX (longest, 1);
}
