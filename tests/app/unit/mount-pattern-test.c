// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_pattern.h"

#include <string.h>

static MountPattern *
read_pattern (const gchar *path)
{
  gchar *wrong;
  MountPattern *pattern = mount_pattern_new (path, &wrong);

  g_assert_cmpstr (wrong, ==, NULL);
  return pattern;
}

static void
bad_patterns_are_refused (void)
{
  static const gchar *const cases[][2] = {
    { "live/{key}", "is not a valid path" },
    { "/live/{key}/", "is not a valid path" },
    { "/live//{key}", "is not a valid path" },
    { "/live/a{key}", "is no variable" },
    { "/live/{}", "is no variable" },
    { "/live/{*}", "is no variable" },
    { "/live/{key", "is no variable" },
    { "/live/{k ey}", "is no variable" },
    { "/live/{key}{other}", "is no variable" },
    { "/live/{abcdefghijklmnopqrstuvwxyz0123456}", "is no variable" },
    { "/live/{key*}/more", "nothing follows it" },
    { "/live/{key}/{key}", "appears twice" },
    { "/l\xc3\xafve/{key}", "contains a character other than" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gchar *wrong = NULL;

    g_test_message ("%s", cases[i][0]);
    g_assert_null (mount_pattern_new (cases[i][0], &wrong));
    g_assert_nonnull (wrong);
    g_assert_nonnull (strstr (wrong, cases[i][1]));
    g_free (wrong);
  }
}

static void
paths_are_matched (void)
{
  static const struct {
    const gchar *pattern, *path, *value; // of the variable `v`; NULL: no match
  } cases[] = {
    { "/live/{v}", "/live/cam1", "cam1" },
    { "/live/{v}", "/live/a-b_c.d~e", "a-b_c.d~e" },
    { "/{v}", "/live", "live" },
    { "/{v}/sub", "/live/sub", "live" },
    { "/site/{v*}", "/site/a", "a" },
    { "/site/{v*}", "/site/a/b/c", "a/b/c" },
    { "/live/{v}", "/live", NULL },
    { "/live/{v}", "/live/", NULL },
    { "/live/{v}", "/live/a/b", NULL },
    { "/live/{v}", "/other/a", NULL },
    { "/live/{v}", "/lives/a", NULL },
    { "/live/{v}", "live/a", NULL },
    { "/live/{v}", "", NULL },
    { "/{v}/sub", "/live/sub/more", NULL },
    { "/{v}/sub", "/live", NULL },
    { "/site/{v*}", "/site", NULL },
    { "/site/{v*}", "/site/", NULL },
    // what leads elsewhere, or is hidden
    { "/live/{v}", "/live/..", NULL },
    { "/live/{v}", "/live/.", NULL },
    { "/live/{v}", "/live/.secret", NULL },
    { "/site/{v*}", "/site/a/../b", NULL },
    { "/site/{v*}", "/site/../../etc", NULL },
    { "/site/{v*}", "/site/a/.b/c", NULL },
    { "/site/{v*}", "/site/a//b", NULL },
    { "/live/{v}", "/live/%2e%2e", NULL },
    { "/live/{v}", "/live/a%2fb", NULL },
    { "/live/{v}", "/live/a?b", NULL },
    { "/live/{v}", "/live/a@b", NULL },
    { "/live/{v}", "/live/a:1", NULL },
    { "/live/{v}", "/live/{v}", NULL },
    { "/live/{v}", "/live/a\nb", NULL },
    { "/live/{v}", "/live/k\xc3\xa4se", NULL },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    MountPattern *pattern = read_pattern (cases[i].pattern);
    GHashTable *values = mount_pattern_match (pattern, cases[i].path);

    g_test_message ("%s, %s", cases[i].pattern, cases[i].path);
    g_assert_cmpstr (values ? g_hash_table_lookup (values, "v") : NULL, ==, cases[i].value);
    g_clear_pointer (&values, g_hash_table_unref);
    mount_pattern_unref (pattern);
  }
}

static void
long_paths_do_not_match (void)
{
  MountPattern *pattern = read_pattern ("/site/{v*}");
  gchar *name = g_strnfill (256, 'a'), *path = g_strconcat ("/site/", name, NULL);

  g_assert_null (mount_pattern_match (pattern, path));
  g_free (path);
  g_free (name);
  mount_pattern_unref (pattern);
}

static void
the_most_exact_comes_first (void)
{
  static const gchar *const sorted[] = { "/a/b/{v}", "/a/{v}/b", "/a/{v}/{w}", "/a/{v*}",
    "/{v}/b/c", "/{v}/{w}/{x}", "/{v}/{w*}", "/{v*}" };

  for (guint i = 0; i + 1 < G_N_ELEMENTS (sorted); i++) {
    MountPattern *first = read_pattern (sorted[i]), *next = read_pattern (sorted[i + 1]);

    g_test_message ("%s, %s", sorted[i], sorted[i + 1]);
    g_assert_cmpint (mount_pattern_compare (first, next), <, 0);
    g_assert_cmpint (mount_pattern_compare (next, first), >, 0);
    g_assert_cmpint (mount_pattern_compare (first, first), ==, 0);
    mount_pattern_unref (first);
    mount_pattern_unref (next);
  }
}

static void
variables_of_uris_are_checked (void)
{
  static const struct {
    const gchar *uri, *wrong; // NULL: good
    gboolean in_host;
  } cases[] = {
    { "rtsp://192.0.2.7/{v}", NULL, FALSE },
    { "rtsp://u:p@192.0.2.7:554/{v}/x?q={v}", NULL, FALSE },
    { "rtsp://{v}/cam", NULL, TRUE },
    { "rtsp://{v}.example.org:554/cam", NULL, TRUE },
    { "rtsp://u@[2001:db8::1]:554/{v}", NULL, FALSE },
    { "file:///srv/{v}.mp4", NULL, FALSE },
    { "publish", NULL, FALSE },
    { "launch:videotestsrc ! { }", NULL, FALSE },
    { "{v}://192.0.2.7/cam", "may not stand in the scheme", FALSE },
    { "rtsp://{v}@192.0.2.7/cam", "may not stand in the scheme", FALSE },
    { "rtsp://u:{v}@192.0.2.7/cam", "may not stand in the scheme", FALSE },
    { "rtsp://192.0.2.7:{v}/cam", "may not stand in the scheme", FALSE },
    { "rtsp://192.0.2.7/{w}", "there is no variable {w}", FALSE },
    { "rtsp://192.0.2.7/{v", "a variable is written {NAME}", FALSE },
    { "rtsp://192.0.2.7/v}{v}}", "a variable is written {NAME}", FALSE },
    { "udp:{v}", "of a URI with :// only", FALSE },
  };
  MountPattern *pattern = read_pattern ("/live/{v}");

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gboolean in_host = FALSE;
    gchar *wrong = mount_pattern_check_uri (pattern, cases[i].uri, &in_host);

    g_test_message ("%s", cases[i].uri);
    if (cases[i].wrong) {
      g_assert_nonnull (wrong);
      g_assert_nonnull (strstr (wrong, cases[i].wrong));
    } else {
      g_assert_cmpstr (wrong, ==, NULL);
      g_assert_cmpint (in_host, ==, cases[i].in_host);
    }
    g_free (wrong);
  }
  mount_pattern_unref (pattern);
}

static void
values_are_put_into_uris (void)
{
  static const gchar *const cases[][3] = {
    // URI, with /a/b, host
    { "rtsp://192.0.2.7/{v}", "rtsp://192.0.2.7/a/b", "192.0.2.7" },
    { "rtsp://u:p@[2001:db8::1]:554/{v}?q={v}", "rtsp://u:p@[2001:db8::1]:554/a/b?q=a/b",
        "[2001:db8::1]" },
    { "file:///srv/{v}.mp4", "file:///srv/a/b.mp4", "" },
    { "publish", "publish", "" },
    { "launch:videotestsrc ! { }", "launch:videotestsrc ! { }", "" },
  };
  MountPattern *pattern = read_pattern ("/live/{v*}");
  GHashTable *values = mount_pattern_match (pattern, "/live/a/b");

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gchar *uri = mount_pattern_expand (cases[i][0], values), *host = mount_pattern_dup_host (uri);

    g_assert_cmpstr (uri, ==, cases[i][1]);
    g_assert_cmpstr (host, ==, cases[i][2]);
    g_free (host);
    g_free (uri);
  }
  g_hash_table_unref (values);
  mount_pattern_unref (pattern);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/mount-pattern/bad-patterns-are-refused", bad_patterns_are_refused);
  g_test_add_func ("/mount-pattern/paths-are-matched", paths_are_matched);
  g_test_add_func ("/mount-pattern/long-paths-do-not-match", long_paths_do_not_match);
  g_test_add_func ("/mount-pattern/the-most-exact-comes-first", the_most_exact_comes_first);
  g_test_add_func ("/mount-pattern/variables-of-uris-are-checked", variables_of_uris_are_checked);
  g_test_add_func ("/mount-pattern/values-are-put-into-uris", values_are_put_into_uris);
  return g_test_run ();
}
