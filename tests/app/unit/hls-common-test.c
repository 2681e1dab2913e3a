// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/hls/hls_common.h"

#define MS G_GINT64_CONSTANT (1000000)
#define S (1000 * MS)

static void
end_segment (HlsCommon *common, gint64 length_ns, gint64 total_ns, gboolean first)
{
  hls_common_note_length (common, length_ns);
  hls_common_end_segment (common, total_ns, first);
}

static void
the_longest_segment_sets_the_target (void)
{
  HlsCommon *common = hls_common_new (3, S, &(HlsNumbers) { 0 });

  end_segment (common, 1200 * MS, 1200 * MS, TRUE);
  end_segment (common, 1000 * MS, 2200 * MS, FALSE);
  hls_common_note_length (common, 2600 * MS); // has not ended
  end_segment (common, 1100 * MS, 1100 * MS, TRUE);
  g_assert_cmpuint (hls_common_get_target (common), ==, 0);
  hls_common_leave (common); // the third one has failed
  g_assert_cmpuint (hls_common_get_target (common), ==, 3);
  end_segment (common, 9 * S, 12 * S, FALSE);
  g_assert_cmpuint (hls_common_get_target (common), ==, 3);
  hls_common_unref (common);
}

static void
a_late_variant_is_not_waited_for (void)
{
  HlsCommon *common = hls_common_new (2, 300 * MS, &(HlsNumbers) { 0 });

  for (guint i = 1; i <= 9; i++) {
    g_assert_cmpuint (hls_common_get_target (common), ==, 0);
    end_segment (common, 560 * MS, i * 560 * MS, i == 1);
  }
  g_assert_cmpuint (hls_common_get_target (common), ==, 1);
  end_segment (common, S, S, TRUE);
  g_assert_cmpuint (hls_common_get_target (common), ==, 1);
  hls_common_unref (common);
}

// Variants see a gap at slightly different times, and only one of them another format.
static void
discontinuities_are_counted_once (void)
{
  const gint64 now = G_GINT64_CONSTANT (1700000000000000), s = G_USEC_PER_SEC;
  HlsCommon *common = hls_common_new (2, S, &(HlsNumbers) { 0 });
  guint64 a = 0, b = 0;

  a = hls_common_count (common, a, now, FALSE);
  b = hls_common_count (common, b, now + s / 10, FALSE);
  g_assert_cmpuint (a + b, ==, 0);
  a = hls_common_count (common, a, now + 10 * s, TRUE); // a gap
  b = hls_common_count (common, b, now + 3 * s, FALSE); // is behind
  g_assert_cmpuint (b, ==, 0);
  b = hls_common_count (common, b, now + 10 * s + s / 10, TRUE);
  g_assert_cmpuint (a, ==, 1);
  g_assert_cmpuint (b, ==, 1);
  b = hls_common_count (common, b, now + 20 * s, TRUE); // another format
  a = hls_common_count (common, a, now + 19 * s, FALSE);
  g_assert_cmpuint (a, ==, 1);
  a = hls_common_count (common, a, now + 20 * s, FALSE);
  g_assert_cmpuint (a, ==, 2);
  g_assert_cmpuint (b, ==, 2);
  for (guint i = 0; i < 1000; i++)
    a = hls_common_count (common, a, now + (30 + i) * s, TRUE);
  g_assert_cmpuint (a, ==, 1002);
  g_assert_cmpuint (hls_common_count (common, b, now + 2000 * s, FALSE), ==, 1002);
  hls_common_unref (common);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/hls/the-longest-segment-sets-the-target", the_longest_segment_sets_the_target);
  g_test_add_func ("/hls/a-late-variant-is-not-waited-for", a_late_variant_is_not_waited_for);
  g_test_add_func ("/hls/discontinuities-are-counted-once", discontinuities_are_counted_once);
  return g_test_run ();
}
