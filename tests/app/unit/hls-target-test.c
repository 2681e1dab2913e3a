// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/hls/hls_target.h"

#define ID "0123456789abcdef0123456789abcdef"
#define FOLDER "/hls/cam/~" ID "/1/"

static void
targets_are_told_apart (void)
{
  static const struct {
    const gchar *target;
    HlsThing thing;
    guint64 number;
    guint window;
  } cases[] = {
    { "/hls/cam/index.m3u8", HLS_MASTER, 0 },
    { "/hls/a/b/plain.m3u8?token=x/y", HLS_MASTER, 0 },
    { "/hls/index.m3u8", HLS_NOTHING, 0 },
    { "/hls/cam/other.m3u8", HLS_NOTHING, 0 },
    { "/hls/cam?/index.m3u8", HLS_NOTHING, 0 },
    { "/hls/", HLS_NOTHING, 0 },
    { FOLDER "live.m3u8?_HLS_msn=1", HLS_PLAYLIST, 0 },
    { FOLDER "segments.m3u8", HLS_PLAYLIST, 0 },
    { FOLDER "init0.mp4", HLS_INIT, 0 },
    { FOLDER "part12.mp4", HLS_PART, 12 },
    { FOLDER "seg3.mp4?x", HLS_SEGMENT, 3 },
    { "/hls/cam/~" ID "/1-7/part12.mp4", HLS_PART, 12, 7 },
    { "/hls/cam/~" ID "/1-0/segments.m3u8", HLS_PLAYLIST, 0 },
    { "/hls/cam/~" ID "/1-/part1.mp4", HLS_NOTHING, 0 },
    { "/hls/cam/~" ID "/-1/part1.mp4", HLS_NOTHING, 0 },
    { "/hls/cam/~" ID "/1-1-1/part1.mp4", HLS_NOTHING, 0 },
    { "/hls/cam/~" ID "/1-99999999999/part1.mp4", HLS_NOTHING, 0 },
    { FOLDER "seg.mp4", HLS_NOTHING, 0 },
    { FOLDER "part-1.mp4", HLS_NOTHING, 0 },
    { FOLDER "part1.mp4.mp4", HLS_NOTHING, 0 },
    { FOLDER "part1", HLS_NOTHING, 0 },
    { FOLDER ".mp4", HLS_NOTHING, 0 },
    { FOLDER "more/part1.mp4", HLS_NOTHING, 0 },
    { "/hls/cam/~" ID "/part1.mp4", HLS_NOTHING, 0 },
    { "/hls/cam/~" ID "/x/part1.mp4", HLS_NOTHING, 0 },
    { "/hls/cam/~" ID "0/1/part1.mp4", HLS_NOTHING, 0 },
    { "/hls/cam/~", HLS_NOTHING, 0 },
    { "/hls/~x/~" ID "/1/part7.mp4", HLS_PART, 7 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    HlsTarget target;

    g_test_message ("%s", cases[i].target);
    hls_target_parse (&target, cases[i].target);
    g_assert_cmpint (target.thing, ==, cases[i].thing);
    g_assert_cmpuint (target.number, ==, cases[i].number);
    if (target.thing > HLS_MASTER) {
      g_assert_cmpstr (target.session, ==, ID);
      g_assert_cmpuint (target.rendition, ==, 1);
      g_assert_cmpuint (target.window, ==, cases[i].window);
    }
  }
}

static void
directives_are_read (void)
{
  HlsTarget target;

  hls_target_parse (&target, FOLDER "live.m3u8");
  g_assert_false (target.wrong);
  g_assert_cmpint (target.ask.msn, ==, -1);
  hls_target_parse (&target, FOLDER "live.m3u8?_HLS_msn=4&_HLS_part=2&_HLS_skip=YES");
  g_assert_false (target.wrong);
  g_assert_cmpint (target.ask.kind, ==, HLS_LIVE);
  g_assert_cmpint (target.ask.msn, ==, 4);
  g_assert_cmpint (target.ask.part, ==, 2);
  g_assert_true (target.ask.skips);
  hls_target_parse (&target, FOLDER "live.m3u8?_HLS_part=2");
  g_assert_true (target.wrong);
}

static void
only_a_master_playlist_names_its_mount (void)
{
  static const struct {
    const gchar *target, *mount;
  } cases[] = {
    { "/hls/cam/index.m3u8", "/cam" },
    { "/hls/a/b/plain.m3u8?size=1x1&token=%41", "/a/b?size=1x1&token=%41" },
    { "/hls/cam/index.m3u8?", "/cam?" },
    { "/hls/index.m3u8", NULL },
    { "/hls/cam/index.m3u", NULL },
    { FOLDER "live.m3u8", NULL },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gchar *mount = hls_target_dup_mount (cases[i].target);

    g_assert_cmpstr (mount, ==, cases[i].mount);
    g_free (mount);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/hls-target/targets-are-told-apart", targets_are_told_apart);
  g_test_add_func ("/hls-target/directives-are-read", directives_are_read);
  g_test_add_func (
      "/hls-target/only-a-master-playlist-names-its-mount", only_a_master_playlist_names_its_mount);
  return g_test_run ();
}
