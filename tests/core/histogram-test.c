// SPDX-License-Identifier: LGPL-2.1-or-later
#include "run/histogram.h"

#include "tap.h"

static WeirHistogram histogram;

static void
every_value_lies_in_its_bucket (void)
{
  for (int shift = 0; shift < 63; shift++) {
    for (int64_t off = -2; off <= 2; off++) {
      int64_t value = (INT64_C (1) << shift) + off;
      size_t bucket;

      if (value < 0)
        continue;
      bucket = weir_histogram_bucket (value);
      CHECK (bucket < WEIR_HISTOGRAM_BUCKETS);
      CHECK (weir_histogram_bucket_start (bucket) <= value);
      CHECK (value < weir_histogram_bucket_start (bucket + 1)
             || weir_histogram_bucket_start (bucket + 1) == INT64_MAX);
    }
  }
  CHECK_INT (weir_histogram_bucket (INT64_MAX), WEIR_HISTOGRAM_BUCKETS - 1);
  CHECK_INT (weir_histogram_bucket (INT64_MIN), 0);
}

static void
buckets_are_contiguous (void)
{
  for (size_t i = 0; i < WEIR_HISTOGRAM_BUCKETS; i++) {
    CHECK (weir_histogram_bucket_start (i) < weir_histogram_bucket_start (i + 1));
    CHECK_INT (weir_histogram_bucket (weir_histogram_bucket_start (i)), i);
  }
}

static void
an_empty_histogram_is_zero (void)
{
  histogram = (WeirHistogram) { 0 };
  CHECK_INT (weir_histogram_percentile (&histogram, 50), 0);
  CHECK (weir_histogram_mean (&histogram) == 0);
}

static void
percentiles_of_small_values_are_exact (void)
{
  static const struct {
    double percent;
    int64_t value;
  } cases[] = { { 0, 0 }, { 1, 0 }, { 50, 24 }, { 90, 44 }, { 98, 48 }, { 100, 49 } };

  histogram = (WeirHistogram) { 0 };
  for (int64_t i = 0; i < 50; i++)
    weir_histogram_add (&histogram, i);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    CHECK_INT (weir_histogram_percentile (&histogram, cases[c].percent), cases[c].value);
  CHECK (weir_histogram_mean (&histogram) == 24.5);
  CHECK_INT (histogram.n, 50);
  CHECK_INT (histogram.max, 49);
}

static void
percentiles_of_large_values_are_close (void)
{
  histogram = (WeirHistogram) { 0 };
  for (int64_t i = 1; i <= 10000; i++)
    weir_histogram_add (&histogram, i * 100003);
  for (int percent = 1; percent <= 100; percent++) {
    int64_t exact = percent * INT64_C (100) * 100003;
    int64_t got = weir_histogram_percentile (&histogram, percent);

    CHECK (got >= exact && got <= exact + exact / 32 + 1);
  }
  CHECK_INT (weir_histogram_percentile (&histogram, 100), 10000 * INT64_C (100003));
}

static void
negative_values_count_as_zero (void)
{
  histogram = (WeirHistogram) { 0 };
  weir_histogram_add (&histogram, -5);
  CHECK_INT (histogram.n, 1);
  CHECK_INT (histogram.max, 0);
  CHECK (histogram.sum == 0);
  CHECK_INT (histogram.buckets[0], 1);
}

int
main (void)
{
  RUN (every_value_lies_in_its_bucket);
  RUN (buckets_are_contiguous);
  RUN (an_empty_histogram_is_zero);
  RUN (percentiles_of_small_values_are_exact);
  RUN (percentiles_of_large_values_are_close);
  RUN (negative_values_count_as_zero);
  return tap_done ();
}
