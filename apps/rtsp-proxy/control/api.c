// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Listens, and lets through what may pass, before its body is read: whoever names the token, and,
// where there is none because it is on loopback, no page of another site that a browser of this
// machine shows.

#include "control/api_private.h"

#include "config.h"
#include "base/log.h"
#include "control/metrics.h"
#include "rtsp-proxy-resources.h"

#include <string.h>

#define BODY_MAX (64 * 1024)
#define REASON_MAX 200 // characters

// ---- answers ----

static gchar *
to_text (JsonBuilder *builder)
{
  JsonNode *root = json_builder_get_root (builder);
  gchar *written = json_to_string (root, TRUE);
  GString *text = g_string_new (written);

  g_free (written);
  json_node_unref (root);
  g_object_unref (builder);
  // json-glib escapes all control characters but the last one.
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

static void
write_mistake (JsonBuilder *builder, const gchar *where, const gchar *what)
{
  gchar *text = g_utf8_make_valid (what, -1);

  api_add_text (builder, "message", text);
  if (where)
    api_add_text (builder, "where", where);
  g_free (text);
}

// {"error": {, to be ended by end_error().
static JsonBuilder *
begin_error (const gchar *where, const gchar *what)
{
  JsonBuilder *builder = json_builder_new ();

  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "error");
  json_builder_begin_object (builder);
  write_mistake (builder, where, what);
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
  gchar *what;

  va_start (args, format);
  what = g_strdup_vprintf (format, args);
  va_end (args);
  api_answer_text (message, status, "application/json", end_error (begin_error (where, what)));
  g_free (what);
}

// "PLACE:LINE:COLUMN: what", or without a place; `*what` lies in the line.
static gchar *
split_place (const gchar *line, const gchar **what)
{
  static GRegex *place; // once: it is the main thread's
  GMatchInfo *match = NULL;
  gchar *where;

  if (!place)
    place = g_regex_new ("^(.+?:[0-9]+:[0-9]+): ", G_REGEX_DOTALL, 0, NULL);
  where = g_regex_match (place, line, 0, &match) ? g_match_info_fetch (match, 1) : NULL;
  *what = where ? line + strlen (where) + 2 : line;
  g_match_info_free (match);
  return where;
}

void
api_fail_error (SoupServerMessage *message, guint status, const GError *error)
{
  GStrv lines = g_strsplit (error->message, "\n", 0);
  const gchar *what;
  gchar *where = split_place (*lines ? *lines : "", &what);
  JsonBuilder *builder = begin_error (where, what);

  if (*lines && lines[1]) {
    json_builder_set_member_name (builder, "others");
    json_builder_begin_array (builder);
    for (gchar **line = lines + 1; *line; line++) {
      g_free (where);
      where = split_place (*line, &what);
      json_builder_begin_object (builder);
      write_mistake (builder, where, what);
      json_builder_end_object (builder);
    }
    json_builder_end_array (builder);
  }
  api_answer_text (message, status, "application/json", end_error (builder));
  g_free (where);
  g_strfreev (lines);
}

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

// The parser calls itself for each level.
static gboolean
is_flat (const gchar *text, gsize len)
{
  guint depth = 0;
  gboolean quoted = FALSE;

  for (gsize i = 0; i < len; i++) {
    if (quoted && text[i] == '\\')
      i++;
    else if (text[i] == '"')
      quoted = !quoted;
    else if (!quoted && (text[i] == '[' || text[i] == '{') && ++depth > 16)
      return FALSE;
    else if (!quoted && (text[i] == ']' || text[i] == '}') && depth > 0)
      depth--;
  }
  return TRUE;
}

// "<data>:1:5: Parse error: ..."
static void
fail_json (SoupServerMessage *message, const GError *error)
{
  GError *ours;
  const gchar *text = error->message;

  if (g_str_has_prefix (text, "<data>:"))
    text += strlen ("<data>");
  ours = g_error_new (error->domain, error->code, "body%s%s", *text == ':' ? "" : ": ", text);
  api_fail_error (message, SOUP_STATUS_BAD_REQUEST, ours);
  g_error_free (ours);
}

const gchar *
api_get_body (const ApiRequest *request, gsize *len)
{
  SoupMessageBody *body = soup_server_message_get_request_body (request->message);
  JsonParser *parser;
  GError *error = NULL;
  gboolean ok;

  // Flattened: it stays where it is until the message goes.
  g_bytes_unref (soup_message_body_flatten (body));
  *len = (gsize) body->length;
  if (*len == 0 || !g_utf8_validate (body->data, body->length, NULL)
      || !is_flat (body->data, *len)) {
    api_fail (request->message, SOUP_STATUS_BAD_REQUEST, "body",
        *len == 0 ? "it is empty" : "it is no JSON that can be used here");
    return NULL;
  }
  parser = json_parser_new ();
  ok = json_parser_load_from_data (parser, body->data, (gssize) *len, &error);
  if (!ok) {
    fail_json (request->message, error);
    g_error_free (error);
  } else if (!json_parser_get_root (parser)
             || !JSON_NODE_HOLDS_OBJECT (json_parser_get_root (parser))) {
    api_fail (request->message, SOUP_STATUS_BAD_REQUEST, "body", "an object belongs here");
    ok = FALSE;
  }
  g_object_unref (parser);
  return ok ? body->data : NULL;
}

// ---- what needs no more than this ----

static void
get_health (ApiRequest *request)
{
  JsonBuilder *builder = json_builder_new ();

  json_builder_begin_object (builder);
  api_add_text (builder, "status", "live");
  api_add_text (builder, "version", PACKAGE_VERSION);
  api_add_number (builder, "uptime-seconds",
      (g_get_monotonic_time () - request->api->started) / G_USEC_PER_SEC);
  json_builder_end_object (builder);
  api_answer (request->message, SOUP_STATUS_OK, builder);
}

// Ready: what is to run all the time has media.
static void
get_ready (ApiRequest *request)
{
  GPtrArray *mounts = server_dup_mounts (request->api->server);
  JsonBuilder *builder = json_builder_new ();
  gboolean ready = TRUE;

  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "waiting-for");
  json_builder_begin_array (builder);
  for (guint i = 0; i < mounts->len; i++) {
    Mount *mount = g_ptr_array_index (mounts, i);

    if (mount_get_config (mount)->on_demand || g_str_equal (mount_get_state_name (mount), "up"))
      continue;
    json_builder_add_string_value (builder, mount_get_path (mount));
    ready = FALSE;
  }
  json_builder_end_array (builder);
  json_builder_set_member_name (builder, "ready");
  json_builder_add_boolean_value (builder, ready);
  json_builder_end_object (builder);
  g_ptr_array_unref (mounts);
  api_answer (request->message, ready ? SOUP_STATUS_OK : SOUP_STATUS_SERVICE_UNAVAILABLE, builder);
}

static void
get_metrics (ApiRequest *request)
{
  api_answer_text (request->message, SOUP_STATUS_OK, "text/plain; version=0.0.4; charset=utf-8",
      metrics_dup_text (request->api->server));
}

static void
get_openapi (ApiRequest *request)
{
  GBytes *bytes = g_resource_lookup_data (
      rtsp_proxy_get_resource (), "/weir/openapi.json", G_RESOURCE_LOOKUP_FLAGS_NONE, NULL);

  api_answer_text (request->message, SOUP_STATUS_OK, "application/json",
      g_strndup (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes)));
  g_bytes_unref (bytes);
}

// ---- routes ----

// A path that ends with '/' has something after it.
static const struct {
  const gchar *method, *path;
  ApiHandler handle;
} routes[] = {
  { "GET", "/v1/mounts", api_list_mounts },
  { "GET", "/v1/mounts/", api_get_mount },
  { "PUT", "/v1/mounts/", api_put_mount },
  { "PATCH", "/v1/mounts/", api_patch_mount },
  { "DELETE", "/v1/mounts/", api_delete_mount },
  { "GET", "/v1/readers", api_list_readers },
  { "GET", "/v1/readers/", api_get_reader },
  { "PATCH", "/v1/readers/", api_patch_reader },
  { "DELETE", "/v1/readers/", api_delete_reader },
  { "GET", "/v1/graph", api_get_graph },
  { "GET", "/v1/graph.dot", api_get_graph_dot },
  { "GET", "/v1/graph.svg", api_get_graph_svg },
  { "POST", "/v1/reload", api_reload },
  { "GET", "/v1/health", get_health },
  { "GET", "/v1/ready", get_ready },
  { "GET", "/v1/openapi.json", get_openapi },
  { "GET", "/metrics", get_metrics },
};

static gboolean
is_route (const gchar *route, const gchar *path)
{
  return g_str_has_suffix (route, "/")
             ? g_str_has_prefix (path, route) && path[strlen (route)] != '\0'
             : g_str_equal (path, route);
}

// FALSE, and it is answered: there is nothing here for this method.
static gboolean
find_route (SoupServerMessage *message, const gchar *path, guint *route)
{
  const gchar *method = soup_server_message_get_method (message);
  GString *allowed = g_string_new (NULL);
  gboolean found = FALSE;

  if (g_str_equal (method, "HEAD"))
    method = "GET";
  for (guint i = 0; i < G_N_ELEMENTS (routes) && !found; i++) {
    if (!is_route (routes[i].path, path))
      continue;
    *route = i;
    found = g_str_equal (routes[i].method, method);
    g_string_append_printf (allowed, "%s%s", allowed->len ? ", " : "", routes[i].method);
  }
  if (!found && !allowed->len) {
    api_fail (message, SOUP_STATUS_NOT_FOUND, NULL,
        "there is nothing here; /v1/openapi.json tells what there is");
  } else if (!found) {
    api_fail (message, SOUP_STATUS_METHOD_NOT_ALLOWED, NULL, "here it is %s", allowed->str);
    soup_message_headers_replace (
        soup_server_message_get_response_headers (message), "Allow", allowed->str);
  }
  g_string_free (allowed, TRUE);
  return found;
}

static void
on_request (
    SoupServer *soup, SoupServerMessage *message, const char *path, GHashTable *query, gpointer api)
{
  ApiRequest request = { api, message, "" };
  guint i;

  if (!find_route (message, path, &i))
    return;
  // A mount's path has the slash before it.
  if (g_str_has_suffix (routes[i].path, "/"))
    request.rest =
        path + strlen (routes[i].path) - (g_str_equal (routes[i].path, "/v1/mounts/") ? 1 : 0);
  routes[i].handle (&request);
  if (!g_str_equal (routes[i].method, "GET"))
    log_event ("api: %s %s: %u", routes[i].method, path, soup_server_message_get_status (message));
}

// ---- who may ask ----

// Of two texts of the same length; takes as long for any two.
static gboolean
is_same (const gchar *a, const gchar *b)
{
  guint8 differ = 0;

  for (gsize i = 0; a[i]; i++)
    differ |= (guint8) a[i] ^ (guint8) b[i];
  return differ == 0;
}

static gboolean
has_token (Api *self, SoupMessageHeaders *headers)
{
  const gchar *given = soup_message_headers_get_one (headers, "Authorization");
  gchar *a, *b;
  gboolean same;

  if (!given || g_ascii_strncasecmp (given, "Bearer ", 7) != 0)
    return FALSE;
  // Of one length, whatever was given.
  a = g_compute_checksum_for_string (G_CHECKSUM_SHA256, self->token, -1);
  b = g_compute_checksum_for_string (G_CHECKSUM_SHA256, given + 7, -1);
  same = is_same (a, b);
  g_free (a);
  g_free (b);
  return same;
}

// "localhost:9554", "[::1]", ... without the port.
static gchar *
dup_host_name (const gchar *host)
{
  const gchar *end = host[0] == '[' ? strchr (host, ']') : NULL;

  if (end)
    return g_strndup (host + 1, (gsize) (end - host - 1));
  return g_strndup (host, strcspn (host, ":"));
}

// A name that somebody made to point to this machine is none of these.
static gboolean
is_our_host (Api *self, SoupMessageHeaders *headers)
{
  const gchar *host = soup_message_headers_get_one (headers, "Host");
  gchar *name;
  gboolean ours;

  if (!proxy_config_is_loopback (self->address))
    return TRUE; // a token is asked for
  if (!host)
    return FALSE;
  name = dup_host_name (host);
  ours = g_ascii_strcasecmp (name, "localhost") == 0 || g_str_equal (name, "127.0.0.1")
         || g_str_equal (name, "::1") || g_str_equal (name, self->address);
  g_free (name);
  return ours;
}

// A browser says whose page asks.
static gboolean
is_our_page (SoupMessageHeaders *headers)
{
  const gchar *origin = soup_message_headers_get_one (headers, "Origin");
  const gchar *host = soup_message_headers_get_one (headers, "Host");

  return !origin
         || (g_str_has_prefix (origin, "http://") && host && g_str_equal (origin + 7, host));
}

static gboolean
is_json (SoupMessageHeaders *headers)
{
  const gchar *type = soup_message_headers_get_content_type (headers, NULL);

  return type
         && (!g_ascii_strcasecmp (type, "application/json")
             || !g_ascii_strcasecmp (type, "application/merge-patch+json"));
}

static gboolean
takes_body (const gchar *method)
{
  return g_str_equal (method, "PUT") || g_str_equal (method, "PATCH");
}

static gboolean
is_small (SoupMessageHeaders *headers)
{
  return soup_message_headers_get_encoding (headers) != SOUP_ENCODING_CONTENT_LENGTH
         || soup_message_headers_get_content_length (headers) <= BODY_MAX;
}

// What libsoup itself refuses, as it can't read it, has an answer of this form too.
static void
on_started (SoupServer *soup, SoupServerMessage *message, gpointer unused)
{
  // libsoup 3.2 does not notice that an idle connection was closed, and keeps it for good.
  soup_message_headers_replace (
      soup_server_message_get_response_headers (message), "Connection", "close");
  set_body (message, "application/json",
      end_error (begin_error (NULL, "this can't be read as a request")));
}

// Before the body comes.
static void
on_headers (SoupServer *soup, SoupServerMessage *message, const char *path, GHashTable *query,
    gpointer data)
{
  Api *self = data;
  SoupMessageHeaders *headers = soup_server_message_get_request_headers (message);
  guint route;

  if (!is_our_host (self, headers) || !is_our_page (headers)) {
    api_fail (message, SOUP_STATUS_FORBIDDEN, NULL, "not for pages of other sites");
  } else if (self->token && !has_token (self, headers)) {
    api_fail (message, SOUP_STATUS_UNAUTHORIZED, NULL, "a token is asked for");
    soup_message_headers_replace (
        soup_server_message_get_response_headers (message), "WWW-Authenticate", "Bearer");
  } else if (!find_route (message, path, &route)) {
    // answered
  } else if (soup_message_headers_get_encoding (headers) == SOUP_ENCODING_CHUNKED) {
    api_fail (message, SOUP_STATUS_LENGTH_REQUIRED, NULL, "a body needs a Content-Length");
  } else if (!is_small (headers)) {
    api_fail (message, SOUP_STATUS_REQUEST_ENTITY_TOO_LARGE, NULL, "a body has %u bytes at most",
        BODY_MAX);
  } else if (takes_body (routes[route].method) && !is_json (headers)) {
    api_fail (message, SOUP_STATUS_UNSUPPORTED_MEDIA_TYPE, "Content-Type",
        "application/json belongs here");
  } else {
    return;
  }
  // What still comes of it is not kept.
  soup_message_body_set_accumulate (soup_server_message_get_request_body (message), FALSE);
}

// ---- life ----

static gboolean
listen_on (Api *self, const ProxyConfig *config, GError **error)
{
  GSocketAddress *address =
      g_inet_socket_address_new_from_string (config->api_address, config->api_port);
  gboolean ok = soup_server_listen (self->soup, address, 0, error);
  GSList *uris;

  g_object_unref (address);
  if (!ok) {
    g_prefix_error (
        error, "api: can't listen on %s port %u: ", config->api_address, config->api_port);
    return FALSE;
  }
  uris = soup_server_get_uris (self->soup);
  self->port = (guint) g_uri_get_port (uris->data);
  g_slist_free_full (uris, (GDestroyNotify) g_uri_unref);
  return TRUE;
}

Api *
api_new (const ProxyConfig *config, Server *server, Reload *reload, GError **error)
{
  Api *self = g_new0 (Api, 1);

  self->soup = soup_server_new ("server-header", "rtsp-proxy", NULL);
  self->server = server;
  self->reload = reload;
  self->address = g_strdup (config->api_address);
  self->token = g_strdup (config->api_token);
  self->started = g_get_monotonic_time ();
  self->ending = g_cancellable_new ();
  g_signal_connect (self->soup, "request-started", G_CALLBACK (on_started), NULL);
  soup_server_add_early_handler (self->soup, NULL, on_headers, self, NULL);
  soup_server_add_handler (self->soup, NULL, on_request, self, NULL);
  if (!listen_on (self, config, error)) {
    api_free (self);
    return NULL;
  }
  return self;
}

void
api_free (Api *self)
{
  g_cancellable_cancel (self->ending);
  while (self->n_drawing > 0)
    g_main_context_iteration (NULL, TRUE);
  soup_server_disconnect (self->soup);
  g_object_unref (self->soup);
  g_object_unref (self->ending);
  g_free (self->address);
  g_free (self->token);
  g_free (self);
}

gchar *
api_dup_base_url (Api *self)
{
  return g_strdup_printf (
      strchr (self->address, ':') ? "http://[%s]:%u" : "http://%s:%u", self->address, self->port);
}
