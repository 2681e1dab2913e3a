// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A histogram of fixed size for values from 0 to 2^63-1, such as times in ns. Its buckets grow with
// the value: below 64 each value has its own, above that each octave has 32, so that a percentile
// is at most 3 % above the value it stands for.

#include <stddef.h>
#include <stdint.h>

#define WEIR_HISTOGRAM_BUCKETS (64 + 57 * 32)

typedef struct {
  uint64_t n;
  double sum;
  int64_t max;
  uint64_t buckets[WEIR_HISTOGRAM_BUCKETS];
} WeirHistogram;

// A negative value counts as 0.
void weir_histogram_add (WeirHistogram *self, int64_t value);

// 0 where there are no values.
double weir_histogram_mean (const WeirHistogram *self);

// The value that `percent` % of all values don't exceed; 0 where there are none.
int64_t weir_histogram_percentile (const WeirHistogram *self, double percent);

// The bucket of a value, and the smallest value of a bucket.
size_t weir_histogram_bucket (int64_t value);
int64_t weir_histogram_bucket_start (size_t bucket);
