// SPDX-License-Identifier: LGPL-2.1-or-later
#include "run/histogram.h"

#define EXACT 64 // values below this have a bucket each
#define PER_OCTAVE 32
#define FIRST_OCTAVE 6

size_t
weir_histogram_bucket (int64_t value)
{
  int octave;

  if (value < EXACT)
    return value < 0 ? 0 : (size_t) value;
  octave = 63 - __builtin_clzll ((unsigned long long) value);
  return EXACT + (size_t) (octave - FIRST_OCTAVE) * PER_OCTAVE
         + (size_t) ((value >> (octave - 5)) - PER_OCTAVE);
}

int64_t
weir_histogram_bucket_start (size_t bucket)
{
  size_t octave, step;

  if (bucket < EXACT)
    return (int64_t) bucket;
  octave = (bucket - EXACT) / PER_OCTAVE + FIRST_OCTAVE;
  step = (bucket - EXACT) % PER_OCTAVE;
  if (octave > 62)
    return INT64_MAX;
  return (int64_t) (PER_OCTAVE + step) << (octave - 5);
}

void
weir_histogram_add (WeirHistogram *self, int64_t value)
{
  if (value < 0)
    value = 0;
  self->n++;
  self->sum += (double) value;
  if (value > self->max)
    self->max = value;
  self->buckets[weir_histogram_bucket (value)]++;
}

double
weir_histogram_mean (const WeirHistogram *self)
{
  return self->n ? self->sum / (double) self->n : 0;
}

int64_t
weir_histogram_percentile (const WeirHistogram *self, double percent)
{
  double wanted = percent / 100 * (double) self->n;
  uint64_t seen = 0;

  if (self->n == 0)
    return 0;
  for (size_t i = 0; i < WEIR_HISTOGRAM_BUCKETS; i++) {
    seen += self->buckets[i];
    if (seen > 0 && (double) seen >= wanted) {
      int64_t last = weir_histogram_bucket_start (i + 1) - 1;

      return last < self->max ? last : self->max;
    }
  }
  return self->max;
}
