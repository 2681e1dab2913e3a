// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A histogram of fixed size for values from 0 to 2^63 - 1, such as times in ns. Below 64 each value
// has its own bucket; above, each octave has 32, so a percentile is at most 3 % too high. For one
// thread at a time. Set to all zeros to begin.

#include <stddef.h>
#include <stdint.h>

#define WEIR_HISTOGRAM_BUCKETS (64 + 57 * 32)

typedef struct {
  uint64_t n;
  double sum;
  int64_t max;
  uint64_t buckets[WEIR_HISTOGRAM_BUCKETS];
} WeirHistogram;

// Counts a value; a negative value counts as 0.
void weir_histogram_add (WeirHistogram *self, int64_t value);

// Returns the mean, or 0 if there are no values.
double weir_histogram_mean (const WeirHistogram *self);

// Returns the value that `percent` % (0 to 100) of all values do not exceed, rounded up by at most
// 3 %; 0 if there are no values.
int64_t weir_histogram_percentile (const WeirHistogram *self, double percent);

// Return the bucket of a value, and the smallest value of a bucket.
size_t weir_histogram_bucket (int64_t value);
int64_t weir_histogram_bucket_start (size_t bucket);
