// SPDX-License-Identifier: LGPL-2.1-or-later
#include "control/api_answer.h"

#include <string.h>

static gchar *
to_text (JsonBuilder *builder)
{
  g_autoptr (JsonNode) root = json_builder_get_root (builder);
  g_autofree gchar *written = json_to_string (root, TRUE);
  GString *text = g_string_new (written);

  g_object_unref (builder);
  // json-glib escapes all control characters except U+001F.
  g_string_replace (text, "\x1f", "\\u001f", 0);
  return g_string_free (text, FALSE);
}

static void
set_body (SoupServerMessage *message, const gchar *type, gchar *text)
{
  SoupMessageHeaders *headers = soup_server_message_get_response_headers (message);

  soup_message_headers_replace (headers, "Cache-Control", "no-store");
  soup_message_headers_replace (headers, "X-Content-Type-Options", "nosniff");
  soup_message_body_truncate (soup_server_message_get_response_body (message));
  soup_server_message_set_response (message, type, SOUP_MEMORY_TAKE, text, strlen (text));
}

void
api_answer_text (SoupServerMessage *message, guint status, const gchar *type, gchar *text)
{
  set_body (message, type, text);
  soup_server_message_set_status (message, status, NULL);
}

void
api_answer (SoupServerMessage *message, guint status, JsonBuilder *body)
{
  api_answer_text (message, status, "application/json", to_text (body));
}

void
api_add_text (JsonBuilder *builder, const gchar *name, const gchar *value)
{
  json_builder_set_member_name (builder, name);
  json_builder_add_string_value (builder, value);
}

void
api_add_number (JsonBuilder *builder, const gchar *name, gint64 value)
{
  json_builder_set_member_name (builder, name);
  json_builder_add_int_value (builder, value);
}

void
api_add_time (JsonBuilder *builder, const gchar *name, gint64 unix_us)
{
  g_autoptr (GDateTime) time = g_date_time_new_from_unix_utc (unix_us / G_USEC_PER_SEC);
  g_autofree gchar *text = g_date_time_format_iso8601 (time);

  api_add_text (builder, name, text);
}

static void
write_message (JsonBuilder *builder, const gchar *where, const gchar *text)
{
  g_autofree gchar *valid = g_utf8_make_valid (text, -1);

  api_add_text (builder, "message", valid);
  if (where)
    api_add_text (builder, "where", where);
}

// Begins {"error": {. Finish with end_error().
static JsonBuilder *
begin_error (const gchar *where, const gchar *text)
{
  JsonBuilder *builder = json_builder_new ();

  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "error");
  json_builder_begin_object (builder);
  write_message (builder, where, text);
  return builder;
}

static gchar *
end_error (JsonBuilder *builder)
{
  json_builder_end_object (builder);
  json_builder_end_object (builder);
  return to_text (builder);
}

void
api_fail (SoupServerMessage *message, guint status, const gchar *where, const gchar *format, ...)
{
  va_list args;
  g_autofree gchar *text = NULL;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  api_answer_text (message, status, "application/json", end_error (begin_error (where, text)));
}

// Splits "PLACE:LINE:COLUMN: MESSAGE". Returns "PLACE:LINE:COLUMN" (transfer full), or NULL if the
// line has no place. `*text` points to the message in `line`.
static gchar *
split_place (const gchar *line, const gchar **text)
{
  static GRegex *place; // made once; main thread only
  g_autoptr (GMatchInfo) match = NULL;
  gchar *where;

  if (!place)
    place = g_regex_new ("^(.+?:[0-9]+:[0-9]+): ", G_REGEX_DOTALL, 0, NULL);
  where = g_regex_match (place, line, 0, &match) ? g_match_info_fetch (match, 1) : NULL;
  *text = where ? line + strlen (where) + 2 : line;
  return where;
}

void
api_fail_error (SoupServerMessage *message, guint status, const GError *error)
{
  g_auto (GStrv) lines = g_strsplit (error->message, "\n", 0);
  const gchar *text;
  gchar *where = split_place (*lines ? *lines : "", &text);
  JsonBuilder *builder = begin_error (where, text);

  if (*lines && lines[1]) {
    json_builder_set_member_name (builder, "others");
    json_builder_begin_array (builder);
    for (gchar **line = lines + 1; *line; line++) {
      g_free (where);
      where = split_place (*line, &text);
      json_builder_begin_object (builder);
      write_message (builder, where, text);
      json_builder_end_object (builder);
    }
    json_builder_end_array (builder);
  }
  api_answer_text (message, status, "application/json", end_error (builder));
  g_free (where);
}

void
api_prepare_failure (SoupServerMessage *message, const gchar *text)
{
  set_body (message, "application/json", end_error (begin_error (NULL, text)));
}
