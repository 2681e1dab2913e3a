// SPDX-License-Identifier: LGPL-2.1-or-later
#include "control/api_request.h"

#include <string.h>

#define REASON_MAX 200 // characters

// ---- the query ----

static GStrv
split_query (const ApiRequest *request)
{
  const gchar *query = g_uri_get_query (soup_server_message_get_uri (request->message));

  return g_strsplit (query ? query : "", "&", 0);
}

static gboolean
names (const gchar *pair, const gchar *name)
{
  gsize len = strlen (name);

  return strncmp (pair, name, len) == 0 && (pair[len] == '=' || pair[len] == '\0');
}

gchar *
api_dup_query (const ApiRequest *request, const gchar *name)
{
  g_auto (GStrv) pairs = split_query (request);
  gchar *value = NULL;

  for (gchar **pair = pairs; *pair && !value; pair++) {
    const gchar *equals = strchr (*pair, '=');

    if (names (*pair, name)) {
      value = equals ? g_uri_unescape_string (equals + 1, NULL) : NULL;
      if (!value || !g_utf8_validate (value, -1, NULL)) {
        g_free (value);
        value = g_strdup ("");
      }
    }
  }
  return value;
}

gchar *
api_dup_reason (const ApiRequest *request, const gchar *fallback)
{
  g_autofree gchar *given = api_dup_query (request, "reason");
  gchar *reason = given && *given
                      ? g_utf8_substring (given, 0, MIN (g_utf8_strlen (given, -1), REASON_MAX))
                      : g_strdup (fallback);

  return reason;
}

gboolean
api_check_query (const ApiRequest *request, ...)
{
  g_auto (GStrv) pairs = split_query (request);
  g_autoptr (GString) allowed = g_string_new (NULL);
  gboolean ok = TRUE;

  for (gchar **pair = pairs; *pair && ok; pair++) {
    const gchar *name;
    va_list args;

    ok = **pair == '\0';
    g_string_truncate (allowed, 0);
    va_start (args, request);
    while (!ok && (name = va_arg (args, const gchar *))) {
      g_string_append_printf (allowed, "%s%s", allowed->len ? ", " : "; allowed: ", name);
      ok = names (*pair, name);
    }
    va_end (args);
    if (!ok)
      api_fail (request->message, SOUP_STATUS_BAD_REQUEST, "query", "unknown parameter \"%.*s\"%s",
          (int) MIN (strcspn (*pair, "="), 64), *pair,
          allowed->len ? allowed->str : "; this operation has no parameters");
  }
  return ok;
}

gboolean
api_is_dry_run (const ApiRequest *request)
{
  g_autofree gchar *value = api_dup_query (request, "dry-run");
  gboolean dry = value && !g_str_equal (value, "false") && !g_str_equal (value, "no");

  return dry;
}

// ---- the body ----

#define DEPTH_MAX 16

// Returns what json-glib must not see, or NULL. It parses recursively, so a deep text would
// overflow the stack. It takes comments and single quotes, in which a double quote would hide
// depth, and ignores what is behind the first value.
static const gchar *
find_fault (const gchar *text, gsize len)
{
  gboolean quoted = FALSE, over = FALSE;
  guint depth = 0;

  for (gsize i = 0; i < len; i++) {
    const gchar c = text[i];

    if (quoted) {
      quoted = c != '"';
      i += c == '\\';
    } else if (over && !g_ascii_isspace (c)) {
      return "the body must be a JSON object, with nothing behind it";
    } else if (c == '/' || c == '\'') {
      return "the body must be a JSON object, without comments and single quotes";
    } else if (c == '"') {
      quoted = TRUE;
    } else if ((c == '[' || c == '{') && ++depth > DEPTH_MAX) {
      return "the JSON has more than " G_STRINGIFY (DEPTH_MAX) " levels of nesting";
    } else if ((c == ']' || c == '}') && depth > 0) {
      over = --depth == 0;
    }
  }
  return NULL;
}

// Answers with json-glib's error, such as "<data>:1:5: Parse error: unexpected character".
static void
fail_json (SoupServerMessage *message, const GError *error)
{
  g_autoptr (GError) ours = NULL;
  g_autoptr (GRegex) prefix = g_regex_new ("^<data>(:[0-9]+:[0-9]+): (Parse error: )?", 0, 0, NULL);
  g_autofree gchar *text =
      g_regex_replace (prefix, error->message, -1, 0, "body\\1: not valid JSON: ", 0, NULL);

  ours = g_error_new_literal (error->domain, error->code, text ? text : error->message);
  api_fail_error (message, SOUP_STATUS_BAD_REQUEST, ours);
}

static gboolean
check_json (SoupServerMessage *message, const gchar *text, gsize len)
{
  const gchar *fault = find_fault (text, len);
  g_autoptr (JsonParser) parser = NULL;
  GError *error = NULL;
  gboolean ok;

  if (len == 0) {
    api_fail (message, SOUP_STATUS_BAD_REQUEST, "body", "the body is empty");
    return FALSE;
  }
  if (!g_utf8_validate (text, (gssize) len, NULL)) {
    api_fail (message, SOUP_STATUS_BAD_REQUEST, "body", "the body is not UTF-8");
    return FALSE;
  }
  if (fault) {
    api_fail (message, SOUP_STATUS_BAD_REQUEST, "body", "%s", fault);
    return FALSE;
  }
  parser = json_parser_new ();
  ok = json_parser_load_from_data (parser, text, (gssize) len, &error);
  if (!ok) {
    fail_json (message, error);
    g_error_free (error);
  }
  return ok;
}

// json-glib checks that the body is JSON. libyaml then parses it, because it knows the line and
// column of each value, for errors. Any JSON text is also YAML.
YamlReader *
api_read_body (const ApiRequest *request)
{
  SoupMessageBody *body = soup_server_message_get_request_body (request->message);
  YamlReader *reader;
  GError *error = NULL;

  g_bytes_unref (soup_message_body_flatten (body));
  if (!check_json (request->message, body->data, (gsize) body->length))
    return NULL;
  reader = yaml_reader_new ("body", body->data, (gsize) body->length, &error);
  if (!reader) {
    api_fail_error (request->message, SOUP_STATUS_BAD_REQUEST, error);
    g_error_free (error);
  } else if (!yaml_root (reader) || !yaml_is_mapping (yaml_root (reader))) {
    api_fail (request->message, SOUP_STATUS_BAD_REQUEST, "body", "the body must be a JSON object");
    g_clear_pointer (&reader, yaml_reader_free);
  }
  return reader;
}

gboolean
api_read_keys (const ApiRequest *request, const SchemaKey *keys, gpointer object, SchemaMode mode)
{
  YamlReader *body = api_read_body (request);
  g_autoptr (GError) error = NULL;
  gboolean ok;

  if (!body)
    return FALSE;
  ok = schema_read (keys, object, body, yaml_root (body), NULL, mode, &error);
  yaml_reader_free (body);
  if (!ok)
    api_fail_error (request->message, SOUP_STATUS_BAD_REQUEST, error);
  return ok;
}

gboolean
api_parse_time (const gchar *text, gint64 *us)
{
  g_autoptr (GTimeZone) utc = g_time_zone_new_utc ();
  g_autoptr (GDateTime) time = g_date_time_new_from_iso8601 (text, utc);
  const gboolean ok = time != NULL;

  if (time)
    *us = g_date_time_to_unix (time) * G_USEC_PER_SEC + g_date_time_get_microsecond (time);
  return ok;
}
