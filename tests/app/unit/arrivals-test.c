// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/arrivals.h"

#define MS G_GINT64_CONSTANT (1000000)

// Notes packets `every` ms apart, after `from` and up to `to`, in ms.
static void
note_all (Arrivals *arrivals, gint64 from, gint64 to, gint64 every)
{
  for (gint64 at = from + every; at <= to; at += every)
    arrivals_note (arrivals, at * MS);
}

static void
the_longest_gap_is_known_after_2_s (void)
{
  Arrivals arrivals = { 0 };

  g_assert_cmpint (arrivals_get_last (&arrivals), ==, 0);
  arrivals_note (&arrivals, 100000 * MS);
  note_all (&arrivals, 100000, 101960, 40);
  g_assert_cmpint (arrivals_get_longest_gap (&arrivals), ==, 0);
  note_all (&arrivals, 101960, 102000, 40);
  g_assert_cmpint (arrivals_get_longest_gap (&arrivals), ==, 40 * MS);
  g_assert_cmpint (arrivals_get_last (&arrivals), ==, 102000 * MS);
}

static void
a_long_gap_counts_for_5_to_10_s (void)
{
  Arrivals arrivals = { 0 };

  arrivals_note (&arrivals, 1000 * MS);
  note_all (&arrivals, 1000, 4000, 40);
  arrivals_note (&arrivals, 4700 * MS);
  note_all (&arrivals, 4700, 9580, 40);
  g_assert_cmpint (arrivals_get_longest_gap (&arrivals), ==, 700 * MS);
  note_all (&arrivals, 9580, 15020, 40);
  g_assert_cmpint (arrivals_get_longest_gap (&arrivals), ==, 40 * MS);
}

// A picture every 20 s.
static void
a_gap_longer_than_the_span_counts (void)
{
  Arrivals arrivals = { 0 };

  arrivals_note (&arrivals, 1000 * MS);
  note_all (&arrivals, 1000, 101000, 20000);
  g_assert_cmpint (arrivals_get_longest_gap (&arrivals), ==, 20000 * MS);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func (
      "/arrivals/the-longest-gap-is-known-after-2-s", the_longest_gap_is_known_after_2_s);
  g_test_add_func ("/arrivals/a-long-gap-counts-for-5-to-10-s", a_long_gap_counts_for_5_to_10_s);
  g_test_add_func (
      "/arrivals/a-gap-longer-than-the-span-counts", a_gap_longer_than_the_span_counts);
  return g_test_run ();
}
