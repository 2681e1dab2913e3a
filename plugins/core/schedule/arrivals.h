// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Estimates the arrival rate of a title's clients from the last arrivals. The time since the last
// arrival counts, so the estimate falls while nobody comes. For one thread at a time.

#include <stddef.h>
#include <stdint.h>

#define WEIR_ARRIVALS_KEPT 64 // for Poisson arrivals, a standard deviation of 12.7 %
#define WEIR_ARRIVALS_MIN 8   // for an estimate other than 0

typedef struct {
  int64_t at_ns[WEIR_ARRIVALS_KEPT];
  uint64_t n; // all arrivals
} WeirArrivals;

void weir_arrivals_add (WeirArrivals *self, int64_t now_ns);

// Returns arrivals a second, 0 until there have been WEIR_ARRIVALS_MIN.
double weir_arrivals_rate (const WeirArrivals *self, int64_t now_ns);
