// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/log.h"

#include <gst/gst.h>
#include <stdio.h>
#include <string.h>

GST_DEBUG_CATEGORY_STATIC (proxy_debug);

static void
on_message (const gchar *domain, GLogLevelFlags level, const gchar *message, gpointer before)
{
  static LogLimit limit = { .burst = 20, .interval_ms = 1000 };

  log_event_limited (&limit, "%s%s", (const gchar *) before, message);
}

void
log_init (void)
{
  // The library of the block store reports lost copies and disks that fail as warnings, and that it
  // balances a store as a message.
  g_log_set_handler (
      "weir-store", G_LOG_LEVEL_MESSAGE | G_LOG_LEVEL_WARNING, on_message, (gpointer) "store ");
  // The elements warn of wrong arguments, and say when the kernel path changes.
  g_log_set_handler ("weir", G_LOG_LEVEL_MESSAGE | G_LOG_LEVEL_WARNING, on_message, (gpointer) "");
  GST_DEBUG_CATEGORY_INIT (proxy_debug, "rtsp-proxy", 0, "rtsp-proxy");
}

// Takes ownership of `text`.
static void
print_line (gchar *text)
{
  g_autoptr (GDateTime) now = g_date_time_new_now_local ();
  g_autofree gchar *time = g_date_time_format (now, "%Y-%m-%d %H:%M:%S");

  for (gchar *c = text; *c; c++) {
    if ((guchar) *c < 0x20 || *c == 0x7f)
      *c = '?';
  }
  // One write, so that lines of two threads do not mix.
  fprintf (stderr, "%s.%03d %s\n", time, g_date_time_get_microsecond (now) / 1000, text);
  GST_CAT_INFO (proxy_debug, "%s", text);
  g_free (text);
}

void
log_event (const gchar *format, ...)
{
  va_list args;

  va_start (args, format);
  print_line (g_strdup_vprintf (format, args));
  va_end (args);
}

void
log_event_limited (LogLimit *limit, const gchar *format, ...)
{
  static GMutex lock; // guards all limits
  guint64 n_suppressed = 0;
  gboolean may;
  va_list args;
  gchar *text;

  g_mutex_lock (&lock);
  may = log_limit_pass (limit, g_get_monotonic_time (), &n_suppressed);
  g_mutex_unlock (&lock);
  if (!may)
    return;
  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  if (n_suppressed) {
    print_line (g_strdup_printf (
        "%s (and %" G_GUINT64_FORMAT " more like this since the last line)", text, n_suppressed));
    g_free (text);
  } else {
    print_line (text);
  }
}

// Returns the URI with "***" for each value in its query that may be a secret. (transfer full)
static gchar *
dup_without_tokens (const gchar *uri)
{
  g_autoptr (GRegex) secret =
      g_regex_new ("([?&](?:(?:access_?)?token|jwt|auth|key|secret|sig|signature|"
                   "pass|passwd|password|pwd|pw)=)[^&#]*",
          G_REGEX_CASELESS, 0, NULL);
  gchar *shown = g_regex_replace (secret, uri, -1, 0, "\\1***", 0, NULL);

  return shown ? shown : g_strdup ("(unreadable)");
}

gchar *
log_redact (const gchar *uri)
{
  const gchar *authority = strstr (uri, "://");
  const gchar *end, *at = NULL;
  gchar *rest, *shown;

  if (g_str_has_prefix (uri, "launch:"))
    return g_strdup ("a launch line"); // any of its properties may hold a password
  if (!authority)
    return g_strdup (uri);
  authority += 3;
  end = authority + strcspn (authority, "/?#");
  for (const gchar *c = authority; c < end; c++) {
    if (*c == '@')
      at = c;
  }
  // A password with an unescaped '/' has no clear end.
  if (!at && strchr (end, '@') && strchr (authority, ':') && strchr (authority, ':') < end)
    return g_strdup_printf ("%.*s(unreadable)", (int) (authority - uri), uri);
  if (!at)
    return dup_without_tokens (uri);
  rest = dup_without_tokens (at + 1);
  shown = g_strdup_printf ("%.*s%s", (int) (authority - uri), uri, rest);
  g_free (rest);
  return shown;
}
