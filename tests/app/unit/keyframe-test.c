// SPDX-License-Identifier: LGPL-2.1-or-later
#include "keyframe.h"

// A packet: number, timestamp, marker, and whether a keyframe starts in it; and whether one is
// complete with it.
typedef struct {
  guint16 seq;
  guint32 timestamp;
  gboolean marker, starts, completes;
} Row;

static void
check (const Row *rows, gsize n)
{
  Keyframe keyframe = { 0 };

  for (gsize i = 0; i < n; i++) {
    const WeirRtp rtp = {
      .seq = rows[i].seq, .timestamp = rows[i].timestamp, .marker = rows[i].marker
    };

    g_test_message ("row %zu", i);
    g_assert_cmpint (keyframe_add (&keyframe, &rtp, rows[i].starts), ==, rows[i].completes);
  }
}

#define CHECK(...)                                                                                 \
  G_STMT_START                                                                                     \
  {                                                                                                \
    const Row rows[] = { __VA_ARGS__ };                                                            \
    check (rows, G_N_ELEMENTS (rows));                                                             \
  }                                                                                                \
  G_STMT_END

static void
all_packets_up_to_the_marker_are_needed (void)
{
  CHECK ({ 7, 10, TRUE, FALSE, FALSE }, { 8, 20, FALSE, TRUE, FALSE },
      { 9, 20, FALSE, FALSE, FALSE }, { 10, 20, TRUE, FALSE, TRUE });
  CHECK ({ 8, 20, TRUE, TRUE, TRUE });
}

static void
parameter_sets_before_it_do_not_count (void)
{
  CHECK (
      { 7, 20, FALSE, FALSE, FALSE }, { 8, 20, FALSE, TRUE, FALSE }, { 9, 20, TRUE, FALSE, TRUE });
}

static void
packets_may_come_in_disorder (void)
{
  CHECK ({ 65535, 20, FALSE, TRUE, FALSE }, { 1, 20, TRUE, FALSE, FALSE },
      { 2, 30, TRUE, FALSE, FALSE }, { 0, 20, FALSE, FALSE, TRUE });
}

static void
one_that_lacks_a_packet_is_given_up_for_the_next (void)
{
  // Across the wrap of timestamps.
  CHECK ({ 8, 4294967290u, FALSE, TRUE, FALSE }, { 10, 4294967290u, TRUE, FALSE, FALSE },
      { 11, 4, TRUE, FALSE, FALSE }, { 12, 14, FALSE, TRUE, FALSE }, { 13, 14, TRUE, FALSE, TRUE });
  CHECK (
      { 8, 20, FALSE, TRUE, FALSE }, { 10, 30, TRUE, FALSE, FALSE }, { 11, 40, TRUE, TRUE, TRUE });
}

static void
each_slice_may_say_that_it_starts (void)
{
  CHECK (
      { 8, 20, FALSE, TRUE, FALSE }, { 9, 20, FALSE, TRUE, FALSE }, { 10, 20, TRUE, TRUE, TRUE });
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/keyframe/" #name, name)
  ADD (all_packets_up_to_the_marker_are_needed);
  ADD (parameter_sets_before_it_do_not_count);
  ADD (packets_may_come_in_disorder);
  ADD (one_that_lacks_a_packet_is_given_up_for_the_next);
  ADD (each_slice_may_say_that_it_starts);
  return g_test_run ();
}
