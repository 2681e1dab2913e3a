// SPDX-License-Identifier: LGPL-2.1-or-later
#include "schedule/arrivals.h"

#define SHORTEST_NS 1000000 // arrivals at the same time must not give an infinite rate

void
weir_arrivals_add (WeirArrivals *self, int64_t now_ns)
{
  self->at_ns[self->n++ % WEIR_ARRIVALS_KEPT] = now_ns;
}

double
weir_arrivals_rate (const WeirArrivals *self, int64_t now_ns)
{
  const uint64_t kept = self->n < WEIR_ARRIVALS_KEPT ? self->n : WEIR_ARRIVALS_KEPT;
  int64_t span_ns;

  if (kept < WEIR_ARRIVALS_MIN)
    return 0;
  span_ns = now_ns - self->at_ns[(self->n - kept) % WEIR_ARRIVALS_KEPT];
  return (double) (kept - 1) * 1e9 / (double) (span_ns > SHORTEST_NS ? span_ns : SHORTEST_NS);
}
