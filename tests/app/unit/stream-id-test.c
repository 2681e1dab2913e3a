// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text/stream_id.h"

#include <string.h>

static void
good_ids_are_read (void)
{
  static const struct {
    const gchar *text;
    gboolean publishes;
    const gchar *url, *user, *secret;
  } cases[] = {
    { "read:cam", FALSE, "/cam", NULL, NULL },
    { "read:/cam?size=320x240", FALSE, "/cam?size=320x240", NULL, NULL },
    { "publish:cam", TRUE, "/cam", NULL, NULL },
    { "publish:/a/b:drone:se:cr,et", TRUE, "/a/b", "drone", "se:cr,et" },
    { "publish:cam:drone", TRUE, "/cam", "drone", NULL },
    { "read:", FALSE, "/", NULL, NULL },
    { "#!::r=cam", FALSE, "/cam", NULL, NULL },
    { "#!::m=publish,r=/cam,u=drone,s=se=cret", TRUE, "/cam", "drone", "se=cret" },
    { "#!::h=host,t=stream,r=cam,m=request,x1=own", FALSE, "/cam", NULL, NULL },
    { "#!::r=cam,s=token", FALSE, "/cam", NULL, "token" },
    { "read:käse", FALSE, "/käse", NULL, NULL },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    const gchar *wrong;
    StreamId id;

    g_test_message ("%s", cases[i].text);
    g_assert_cmpint (stream_id_read (&id, cases[i].text, &wrong), ==, STREAM_ID_GOOD);
    g_assert_null (wrong);
    g_assert_cmpint (id.publishes, ==, cases[i].publishes);
    g_assert_cmpstr (id.url, ==, cases[i].url);
    g_assert_cmpstr (id.user, ==, cases[i].user);
    g_assert_cmpstr (id.secret, ==, cases[i].secret);
    stream_id_clear (&id);
  }
}

static void
bad_ids_are_refused (void)
{
  static const struct {
    const gchar *text;
    StreamIdVerdict verdict;
  } cases[] = {
    { "", STREAM_ID_MALFORMED },
    { "cam", STREAM_ID_MALFORMED },
    { "read", STREAM_ID_MALFORMED },
    { "Read:cam", STREAM_ID_MALFORMED },
    { "#!::", STREAM_ID_MALFORMED },
    { "#!::m=publish", STREAM_ID_MALFORMED },
    { "#!::r=cam,", STREAM_ID_MALFORMED },
    { "#!::r=cam,r=cam", STREAM_ID_MALFORMED },
    { "#!::r=cam,u=a,u=b", STREAM_ID_MALFORMED },
    { "#!::=cam", STREAM_ID_MALFORMED },
    { "#!::r=cam,m=bidirectional", STREAM_ID_BAD_MODE },
    { "#!::m=,r=cam", STREAM_ID_BAD_MODE },
    { "#!::r=cam,t=file", STREAM_ID_BAD_MODE },
    { "read:c\nam", STREAM_ID_MALFORMED },
    { "read:\xff", STREAM_ID_MALFORMED },
  };
  gchar *longest = g_strnfill (STREAM_ID_MAX + 1, 'x');

  for (guint i = 0; i <= G_N_ELEMENTS (cases); i++) {
    const gboolean is_longest = i == G_N_ELEMENTS (cases);
    const gchar *text = is_longest ? longest : cases[i].text, *wrong;
    StreamId id;

    if (is_longest)
      memcpy (longest, "read:", 5);
    g_test_message ("case %u", i); // one is not UTF-8
    g_assert_cmpint (stream_id_read (&id, text, &wrong), ==,
        is_longest ? STREAM_ID_MALFORMED : cases[i].verdict);
    g_assert_nonnull (wrong);
    g_assert_null (id.url);
    g_assert_null (id.secret);
  }
  g_free (longest);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/stream-id/good_ids_are_read", good_ids_are_read);
  g_test_add_func ("/stream-id/bad_ids_are_refused", bad_ids_are_refused);
  return g_test_run ();
}
