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
  GStrv pairs = split_query (request);
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
  g_strfreev (pairs);
  return value;
}

gchar *
api_dup_reason (const ApiRequest *request, const gchar *otherwise)
{
  gchar *given = api_dup_query (request, "reason");
  gchar *reason = given && *given
                      ? g_utf8_substring (given, 0, MIN (g_utf8_strlen (given, -1), REASON_MAX))
                      : g_strdup (otherwise);

  g_free (given);
  return reason;
}

gboolean
api_check_query (const ApiRequest *request, ...)
{
  GStrv pairs = split_query (request);
  gboolean ok = TRUE;

  for (gchar **pair = pairs; *pair && ok; pair++) {
    const gchar *name;
    va_list args;

    ok = **pair == '\0';
    va_start (args, request);
    while (!ok && (name = va_arg (args, const gchar *)))
      ok = names (*pair, name);
    va_end (args);
    if (!ok)
      api_fail (
          request->message, SOUP_STATUS_BAD_REQUEST, "query", "unknown parameter \"%.64s\"", *pair);
  }
  g_strfreev (pairs);
  return ok;
}

gboolean
api_is_dry_run (const ApiRequest *request)
{
  gchar *value = api_dup_query (request, "dry-run");
  gboolean dry = value && !g_str_equal (value, "false") && !g_str_equal (value, "no");

  g_free (value);
  return dry;
}

// ---- the body ----

YamlReader *
api_read_body (const ApiRequest *request)
{
  SoupMessageBody *body = soup_server_message_get_request_body (request->message);
  GError *error = NULL;
  YamlReader *reader;

  g_bytes_unref (soup_message_body_flatten (body));
  if (body->length == 0) {
    api_fail (request->message, SOUP_STATUS_BAD_REQUEST, "body", "it is empty");
    return NULL;
  }
  reader = yaml_reader_new_json ("body", body->data, (gsize) body->length, &error);
  if (!reader) {
    api_fail_error (request->message, SOUP_STATUS_BAD_REQUEST, error);
    g_error_free (error);
  } else if (!yaml_is_mapping (yaml_root (reader))) {
    api_fail (request->message, SOUP_STATUS_BAD_REQUEST, "body", "an object belongs here");
    g_clear_pointer (&reader, yaml_reader_free);
  }
  return reader;
}
