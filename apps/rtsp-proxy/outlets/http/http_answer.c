// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/http/http_answer.h"

#include <string.h>

#define DATE_BYTES 40

static gchar *
dup_date (gint64 seconds)
{
  GDateTime *date = g_date_time_new_from_unix_utc (seconds);
  gchar *text = date ? soup_date_time_to_string (date, SOUP_DATE_HTTP) : NULL;

  g_clear_pointer (&date, g_date_time_unref);
  return text;
}

void
http_answer_add_date (GString *answer, const gchar *name, gint64 seconds)
{
  gchar *text = dup_date (seconds);

  if (text)
    http_answer_add (answer, name, text);
  g_free (text);
}

// Each thread writes the date once a second: that takes longer than the rest of a head.
static void
add_now (GString *answer)
{
  static _Thread_local gint64 written = -1;
  static _Thread_local gchar date[DATE_BYTES];
  gint64 now = g_get_real_time () / G_USEC_PER_SEC;

  if (now != written) {
    gchar *text = dup_date (now);

    g_strlcpy (date, text ? text : "", sizeof date);
    g_free (text);
    written = now;
  }
  if (*date)
    http_answer_add (answer, "Date", date);
}

static void
add_number (GString *answer, guint64 number)
{
  gchar digits[20];
  gsize at = sizeof digits;

  do
    digits[--at] = (gchar) ('0' + number % 10);
  while (number /= 10);
  g_string_append_len (answer, digits + at, (gssize) (sizeof digits - at));
}

static const gchar *
get_phrase (guint status)
{
  return status == 428 ? "Precondition Required" : soup_status_get_phrase (status); // RFC 6585
}

void
http_answer_begin (GString *answer, guint status, gboolean keeps)
{
  g_string_assign (answer, "HTTP/1.1 ");
  add_number (answer, status);
  g_string_append_c (answer, ' ');
  g_string_append (answer, get_phrase (status));
  g_string_append (answer, "\r\n");
  add_now (answer);
  http_answer_add (answer, "Connection", keeps ? "keep-alive" : "close");
}

void
http_answer_add (GString *answer, const gchar *name, const gchar *value)
{
  g_string_append (answer, name);
  g_string_append (answer, ": ");
  g_string_append (answer, value);
  g_string_append (answer, "\r\n");
}

void
http_answer_add_length (GString *answer, guint64 length)
{
  g_string_append (answer, "Content-Length: ");
  add_number (answer, length);
  g_string_append (answer, "\r\n");
}

// Not from the MIME database of the system, which may be missing.
const gchar *
http_answer_type (const gchar *name)
{
  static const struct {
    const gchar *ending, *type;
  } types[] = {
    { ".mp4", "video/mp4" },
    { ".m4v", "video/mp4" },
    { ".m4a", "audio/mp4" },
    { ".mov", "video/quicktime" },
    { ".mkv", "video/x-matroska" },
    { ".mka", "audio/x-matroska" },
    { ".webm", "video/webm" },
    { ".ts", "video/mp2t" },
    { ".m2ts", "video/mp2t" },
    { ".mts", "video/mp2t" },
    { ".mpg", "video/mpeg" },
    { ".mpeg", "video/mpeg" },
    { ".ogv", "video/ogg" },
    { ".ogg", "audio/ogg" },
    { ".opus", "audio/ogg" },
    { ".flac", "audio/flac" },
    { ".mp3", "audio/mpeg" },
    { ".aac", "audio/aac" },
    { ".wav", "audio/wav" },
    { ".vtt", "text/vtt" },
    { ".srt", "application/x-subrip" },
    { ".jpg", "image/jpeg" },
    { ".png", "image/png" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (types); i++) {
    gsize length = strlen (name), ending = strlen (types[i].ending);

    if (length > ending && !g_ascii_strcasecmp (name + length - ending, types[i].ending))
      return types[i].type;
  }
  return "application/octet-stream";
}

void
http_answer_end_title (
    GString *answer, const StoreBytes *bytes, const gchar *name, const HttpBody *body)
{
  http_answer_add (answer, "ETag", bytes->etag);
  if (bytes->modified > 0)
    http_answer_add_date (answer, "Last-Modified", bytes->modified);
  if (body->status != SOUP_STATUS_NOT_MODIFIED) {
    http_answer_add (answer, "Accept-Ranges", "bytes");
    http_answer_add (answer, "Content-Type", http_answer_type (name));
    http_answer_add (answer, "X-Content-Type-Options", "nosniff");
    http_answer_add_length (answer, body->length);
  }
  if (body->status == SOUP_STATUS_PARTIAL_CONTENT)
    g_string_append_printf (answer,
        "Content-Range: bytes %" G_GUINT64_FORMAT "-%" G_GUINT64_FORMAT "/%" G_GUINT64_FORMAT
        "\r\n",
        body->start, body->start + body->length - 1, bytes->size);
  g_string_append (answer, "\r\n");
}

void
http_answer_end_text (GString *answer, guint status, const gchar *reason, gboolean head)
{
  gchar *text;

  if (status == SOUP_STATUS_NO_CONTENT || status == SOUP_STATUS_NOT_MODIFIED) {
    g_string_append (answer, "\r\n");
    return;
  }
  text = reason ? g_strdup_printf ("%s: %s\n", get_phrase (status), reason)
                : g_strdup_printf ("%s\n", get_phrase (status));
  http_answer_add (answer, "Content-Type", "text/plain; charset=utf-8");
  http_answer_add (answer, "X-Content-Type-Options", "nosniff");
  http_answer_add_length (answer, strlen (text));
  g_string_append (answer, "\r\n");
  if (!head)
    g_string_append (answer, text);
  g_free (text);
}
