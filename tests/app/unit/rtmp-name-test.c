// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text/rtmp_name.h"

static void
good_names_are_read (void)
{
  static const struct {
    const gchar *app, *name, *url, *user, *secret;
  } cases[] = {
    { "live", "cam", "/live/cam", NULL, NULL },
    { "cam", "", "/cam", NULL, NULL },
    { "a/b", "c/d", "/a/b/c/d", NULL, NULL },
    { "/live/", "/cam/", "/live/cam", NULL, NULL },
    { "live", "cam?user=drone&pass=a%26b%3D", "/live/cam", "drone", "a&b=" },
    { "cam?user=drone&pass=x", "", "/cam", "drone", "x" },
    { "live?pass=x", "cam?user=drone", "/live/cam", "drone", "x" },
    { "live", "cam?x=1&user=drone&y=2", "/live/cam?x=1&y=2", "drone", NULL },
    { "live?x=1", "cam?token=t", "/live/cam?x=1&token=t", NULL, NULL },
    { "live", "cam?pass=", "/live/cam", NULL, "" },
    { "käse", "", "/käse", NULL, NULL },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    const gchar *wrong;
    RtmpName name;

    g_test_message ("%s, %s", cases[i].app, cases[i].name);
    g_assert_true (rtmp_name_read (&name, cases[i].app, cases[i].name, &wrong));
    g_assert_null (wrong);
    g_assert_cmpstr (name.url, ==, cases[i].url);
    g_assert_cmpstr (name.user, ==, cases[i].user);
    g_assert_cmpstr (name.secret, ==, cases[i].secret);
    rtmp_name_clear (&name);
  }
}

static void
bad_names_are_refused (void)
{
  static const gchar *const cases[][2] = {
    { "", "" },
    { "/", "/" },
    { "?user=a", "" },
    { "live", "c\nam" },
    { "live\033[1m", "cam" },
    { "live", "\xff" },
    { "live", "cam?user=a&user=b" },
    { "live?pass=a", "cam?pass=a" },
    { "live", "cam?pass=%00" },
    { "live", "cam?user=%0a" },
    { "live", "cam?user=%ff" },
    { "live", "cam?user=%zz" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    const gchar *wrong;
    RtmpName name;

    g_test_message ("case %u", i); // some are not UTF-8
    g_assert_false (rtmp_name_read (&name, cases[i][0], cases[i][1], &wrong));
    g_assert_nonnull (wrong);
    g_assert_null (name.url);
    g_assert_null (name.secret);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/rtmp-name/good_names_are_read", good_names_are_read);
  g_test_add_func ("/rtmp-name/bad_names_are_refused", bad_names_are_refused);
  return g_test_run ();
}
