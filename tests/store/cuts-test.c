// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuts.h"

#include "disks/index.h"

#include <string.h>

#define MS G_GINT64_CONSTANT (1000000)

// Checks that the inputs of the fuzz target `name` have these keyframes, whatever the pieces are.
static void
expect (CutsKind kind, const gchar *name, const CutsKeyframe *keyframes, guint n)
{
  g_autofree gchar *path =
      g_build_filename (g_getenv ("WEIR_DATA"), "../fuzz/corpus/cuts", name, NULL);
  g_autofree gchar *data = NULL;
  gsize length;

  g_assert_true (g_file_get_contents (path, &data, &length, NULL));
  for (gsize piece = 1; piece < 600; piece += 7) {
    GArray *found = g_array_new (FALSE, FALSE, sizeof (CutsKeyframe));
    Cuts *cuts = cuts_new (kind);

    for (gsize at = 2; at < length; at += piece)
      cuts_feed (cuts, (const guint8 *) data + at, MIN (piece, length - at), found);
    g_assert_cmpuint (found->len, ==, n);
    for (guint i = 0; i < n; i++) {
      const CutsKeyframe *keyframe = &g_array_index (found, CutsKeyframe, i);

      g_assert_cmpuint (keyframe->offset, ==, keyframes[i].offset);
      g_assert_cmpint (keyframe->time_ns, ==, keyframes[i].time_ns);
    }
    cuts_free (cuts);
    g_array_unref (found);
  }
}

static void
mpeg_ts_is_cut_at_the_tables_before_a_keyframe (void)
{
  // The time wraps after the first keyframe. Audio, which has the indicator, too, does not count.
  const CutsKeyframe keyframes[] = { { 0, 0 }, { 6 * 188, 1000 * MS }, { 12 * 188, 2000 * MS } };

  expect (CUTS_TS, "ts", keyframes, G_N_ELEMENTS (keyframes));
}

static void
h264_is_cut_before_the_access_unit_of_an_idr_picture (void)
{
  // The second one has a delimiter and a message before it, the first has a second slice.
  const CutsKeyframe keyframes[] = { { 0, WEIR_INDEX_NO_TIME }, { 65, WEIR_INDEX_NO_TIME } };

  expect (CUTS_H264, "h264", keyframes, G_N_ELEMENTS (keyframes));
}

static void
h265_is_cut_before_the_access_unit_of_a_random_access_picture (void)
{
  const CutsKeyframe keyframes[] = { { 0, WEIR_INDEX_NO_TIME }, { 37, WEIR_INDEX_NO_TIME } };

  expect (CUTS_H265, "h265", keyframes, G_N_ELEMENTS (keyframes));
}

static void
kinds_are_guessed (void)
{
  guint8 ts[3 * 188] = { [0] = 0x47, [188] = 0x47, [376] = 0x47 };

  g_assert_cmpint (cuts_guess (ts, sizeof ts, ""), ==, CUTS_TS);
  g_assert_cmpint (cuts_guess (ts, 376, ""), ==, CUTS_NONE);
  g_assert_cmpint (
      cuts_guess ((const guint8 *) "\0\0\1\x67", 4, "video/x-h264, a=b"), ==, CUTS_H264);
  g_assert_cmpint (cuts_guess ((const guint8 *) "\0\0\0\1", 4, "video/x-h265"), ==, CUTS_H265);
  g_assert_cmpint (cuts_guess ((const guint8 *) "\0\0\0\x18", 4, "video/x-h264"), ==, CUTS_NONE);
  g_assert_cmpint (cuts_guess ((const guint8 *) "\0\0\1\xb3", 4, "video/mpeg"), ==, CUTS_NONE);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cuts/mpeg-ts-is-cut-at-the-tables-before-a-keyframe",
      mpeg_ts_is_cut_at_the_tables_before_a_keyframe);
  g_test_add_func ("/cuts/h264-is-cut-before-the-access-unit-of-an-idr-picture",
      h264_is_cut_before_the_access_unit_of_an_idr_picture);
  g_test_add_func ("/cuts/h265-is-cut-before-the-access-unit-of-a-random-access-picture",
      h265_is_cut_before_the_access_unit_of_a_random_access_picture);
  g_test_add_func ("/cuts/kinds-are-guessed", kinds_are_guessed);
  return g_test_run ();
}
