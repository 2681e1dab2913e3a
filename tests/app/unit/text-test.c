// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/backoff.h"
#include "base/log.h"

static void
redacts (void)
{
  static const gchar *const cases[][2] = {
    { "rtsp://host/x", "rtsp://host/x" },
    { "rtsp://user:pw@host/x", "rtsp://host/x" },
    { "rtsp://user@host:554/x?a=b", "rtsp://host:554/x?a=b" },
    { "rtsp://user:p@ss@host/x", "rtsp://host/x" },
    { "rtsp://user:p/w@host/x", "rtsp://(unreadable)" },
    { "rtsp://user:p?w@host/x", "rtsp://(unreadable)" },
    { "rtsp://user:p#w@host/x", "rtsp://(unreadable)" },
    { "rtsps://user:pw@[2001:db8::1]:322/x", "rtsps://[2001:db8::1]:322/x" },
    { "rtsp://[::1]/x", "rtsp://[::1]/x" },
    { "rtsp://host/x@y", "rtsp://host/x@y" },
    { "file:///dir/clip@home.mp4", "file:///dir/clip@home.mp4" },
    { "file:///dir/a:b.mp4", "file:///dir/a:b.mp4" },
    { "launch: rtspsrc location=rtsp://h/x user-pw=pw", "a launch line" },
    { "no URI", "no URI" },
    { "", "" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gchar *text = log_redact (cases[i][0]);

    g_assert_cmpstr (text, ==, cases[i][1]);
    g_free (text);
  }
}

static void
backs_off (void)
{
  static const guint full[] = { 500, 500, 1000, 2000, 4000, 8000, 15000, 15000, 15000 };

  for (guint n = 0; n < G_N_ELEMENTS (full); n++) {
    guint last = 0;

    for (guint i = 0; i < 10000; i++) {
      guint ms = backoff_ms (n, i / 10000.);

      g_assert_cmpuint (ms, >=, full[n] / 2);
      g_assert_cmpuint (ms, <, full[n]);
      g_assert_cmpuint (ms, >=, last);
      last = ms;
    }
    // All of the range is used.
    g_assert_cmpuint (backoff_ms (n, 0), ==, full[n] / 2);
    g_assert_cmpuint (last, >=, full[n] - 3);
  }
  g_assert_cmpuint (backoff_ms (G_MAXUINT, 0), ==, 7500);
}

static void
limits_what_is_said (void)
{
  LogLimit limit = { .burst = 3, .interval_ms = 1000 };
  guint64 unsaid = 0;

  for (guint i = 0; i < 3; i++) {
    g_assert_true (log_limit_pass (&limit, 5000, &unsaid));
    g_assert_cmpuint (unsaid, ==, 0);
  }
  g_assert_false (log_limit_pass (&limit, 5000, &unsaid));
  g_assert_false (log_limit_pass (&limit, 5000 + 999999, &unsaid));
  g_assert_true (log_limit_pass (&limit, 5000 + 1000000, &unsaid));
  g_assert_cmpuint (unsaid, ==, 2);
  g_assert_false (log_limit_pass (&limit, 5000 + 1000001, &unsaid));
  // After a rest it is as at first.
  for (guint i = 0; i < 3; i++) {
    g_assert_true (log_limit_pass (&limit, 60000000, &unsaid));
    g_assert_cmpuint (unsaid, ==, i == 0);
  }
  g_assert_false (log_limit_pass (&limit, 60000000, &unsaid));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/log/redact", redacts);
  g_test_add_func ("/log/limit", limits_what_is_said);
  g_test_add_func ("/backoff/bounds", backs_off);
  return g_test_run ();
}
