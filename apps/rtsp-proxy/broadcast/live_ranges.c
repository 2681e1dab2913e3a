// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broadcast/live_ranges.h"

#include <gio/gio.h>
#include <string.h>

// Reads a number of 16 bits, and `end` after it.
static gboolean
read_number (const gchar **at, gchar end, guint *number)
{
  const gchar *begin = *at;

  *number = 0;
  while (g_ascii_isdigit (**at) && *number <= G_MAXUINT16)
    *number = *number * 10 + (guint) (*(*at)++ - '0');
  if (*at == begin || *number > G_MAXUINT16 || **at != end)
    return FALSE;
  if (end)
    ++*at;
  return TRUE;
}

static gboolean
read_range (const gchar *line, LiveRange *range)
{
  guint from, to;

  if (!read_number (&line, ' ', &range->track) || !read_number (&line, '-', &from)
      || !read_number (&line, '\0', &to))
    return FALSE;
  range->from = (guint16) from;
  range->n = (guint) (guint16) (to - from) + 1;
  return TRUE;
}

// Returns the number of ranges, or -1.
static gint
read_lines (gchar *text, LiveRange ranges[LIVE_RANGES_MAX])
{
  gint n = 0;

  while (text) {
    gchar *end = strchr (text, '\n');

    if (end)
      *end++ = '\0';
    g_strstrip (text);
    if (*text && (n == LIVE_RANGES_MAX || !read_range (text, &ranges[n++])))
      return -1;
    text = end;
  }
  return n > 0 ? n : -1;
}

gint
live_ranges_parse (
    const gchar *text, gsize length, LiveRange ranges[LIVE_RANGES_MAX], GError **error)
{
  gchar *copy = g_strndup (text ? text : "", length), *begin = g_strstrip (copy);
  gint n = g_str_equal (begin, "live") ? 0 : read_lines (begin, ranges);

  g_free (copy);
  if (n < 0)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
        "expected live, or up to %u lines TRACK FROM-TO with numbers from 0 to 65535",
        LIVE_RANGES_MAX);
  return n;
}
