// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/backoff.h"
#include "base/log.h"

static void
credentials_are_removed_from_a_uri (void)
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
    { "rtsp://host/x?token=secret", "rtsp://host/x?token=***" },
    { "rtsp://u:p@host/x?a=b&Password=s/e#c&c=d&key=",
        "rtsp://host/x?a=b&Password=***#c&c=d&key=***" },
    { "rtsp://host/x?tokens=3&monkey=1&access_token=s",
        "rtsp://host/x?tokens=3&monkey=1&access_token=***" },
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
waits_grow_within_bounds (void)
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
    // The waits use the whole range.
    g_assert_cmpuint (backoff_ms (n, 0), ==, full[n] / 2);
    g_assert_cmpuint (last, >=, full[n] - 3);
  }
  g_assert_cmpuint (backoff_ms (G_MAXUINT, 0), ==, 7500);
}

static void
lines_are_limited_and_counted (void)
{
  LogLimit limit = { .burst = 3, .interval_ms = 1000 };
  guint64 left_out = 0;

  for (guint i = 0; i < 3; i++) {
    g_assert_true (log_limit_pass (&limit, 5000, &left_out));
    g_assert_cmpuint (left_out, ==, 0);
  }
  g_assert_false (log_limit_pass (&limit, 5000, &left_out));
  g_assert_false (log_limit_pass (&limit, 5000 + 999999, &left_out));
  g_assert_true (log_limit_pass (&limit, 5000 + 1000000, &left_out));
  g_assert_cmpuint (left_out, ==, 2);
  g_assert_false (log_limit_pass (&limit, 5000 + 1000001, &left_out));
  // After a pause the whole burst is allowed again.
  for (guint i = 0; i < 3; i++) {
    g_assert_true (log_limit_pass (&limit, 60000000, &left_out));
    g_assert_cmpuint (left_out, ==, i == 0);
  }
  g_assert_false (log_limit_pass (&limit, 60000000, &left_out));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/log/credentials-are-removed-from-a-uri", credentials_are_removed_from_a_uri);
  g_test_add_func ("/log/lines-are-limited-and-counted", lines_are_limited_and_counted);
  g_test_add_func ("/backoff/waits-grow-within-bounds", waits_grow_within_bounds);
  return g_test_run ();
}
