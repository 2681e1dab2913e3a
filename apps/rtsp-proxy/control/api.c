// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The API's HTTP server and routes. Requests are checked before their body is read.

#include "control/api.h"

#include "config.h"
#include "base/log.h"
#include "control/api_guard.h"
#include "control/api_handlers.h"
#include "control/api_limits.h"
#include "control/metrics.h"
#include "rtsp-proxy-resources.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#define BODY_MAX (64 * 1024)
#define MOUNT_PATH "/v1/mounts/"
#define INSERT_PATH MOUNT_PATH "*/insert"
#define RECORDING_PATH "/v1/recordings/get"

// ---- small operations ----

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

// The proxy is ready when every mount with `on-demand: no` has media, except for those that wait
// for a publisher, and those that lack something of this machine: they need an operator.
static void
get_ready (ApiRequest *request)
{
  GPtrArray *mounts = mounts_dup_all (proxy_get_mounts (request->api->proxy));
  JsonBuilder *builder = json_builder_new ();
  gboolean ready = TRUE;

  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "waiting-for");
  json_builder_begin_array (builder);
  for (guint i = 0; i < mounts->len; i++) {
    Mount *mount = g_ptr_array_index (mounts, i);

    if (mount_lacks (mount) || g_str_equal (mount_get_state_name (mount), "waiting")
        || mount_get_config (mount)->on_demand || g_str_equal (mount_get_state_name (mount), "up"))
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
      metrics_dup_text (request->api->proxy, request->api->cluster));
}

static void
get_openapi (ApiRequest *request)
{
  g_autoptr (GBytes) bytes = g_resource_lookup_data (
      rtsp_proxy_get_resource (), "/weir/openapi.json", G_RESOURCE_LOOKUP_FLAGS_NONE, NULL);

  api_answer_text (request->message, SOUP_STATUS_OK, "application/json",
      g_strndup (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes)));
}

// ---- routes ----

// A path that ends with '/' matches all longer paths that begin with it, but for those of another
// route, which has '*' in place of the path of a mount.
static const struct {
  const gchar *method, *path;
  ApiHandler handle;
} routes[] = {
  { "GET", "/v1/mounts", api_list_mounts },
  { "GET", INSERT_PATH, api_get_insertion },
  { "POST", INSERT_PATH, api_post_insertion },
  { "DELETE", INSERT_PATH, api_delete_insertion },
  { "GET", MOUNT_PATH, api_get_mount },
  { "PUT", MOUNT_PATH, api_put_mount },
  { "PATCH", MOUNT_PATH, api_patch_mount },
  { "DELETE", MOUNT_PATH, api_delete_mount },
  { "GET", "/v1/readers", api_list_readers },
  { "GET", "/v1/readers/", api_get_reader },
  { "PATCH", "/v1/readers/", api_patch_reader },
  { "DELETE", "/v1/readers/", api_delete_reader },
  { "GET", "/v1/graph", api_get_graph },
  { "GET", "/v1/graph.dot", api_get_graph_dot },
  { "GET", "/v1/graph.svg", api_get_graph_svg },
  { "GET", "/v1/cluster", api_get_cluster },
  { "POST", "/v1/drain", api_post_drain },
  { "GET", "/v1/recordings", api_list_recordings },
  { "GET", RECORDING_PATH, api_get_recording },
  { "GET", "/v1/events", api_get_events },
  { "POST", "/v1/reload", api_reload },
  { "GET", "/v1/health", get_health },
  { "GET", "/v1/ready", get_ready },
  { "GET", "/v1/openapi.json", get_openapi },
  { "GET", "/metrics", get_metrics },
};

// Reports whether the path has the path of a mount in place of the route's '*'.
static gboolean
is_of_mount (const gchar *route, const gchar *path)
{
  const gchar *star = strchr (route, '*');

  return strlen (path) > strlen (route) && strncmp (path, route, (gsize) (star - route)) == 0
         && g_str_has_suffix (path, star + 1);
}

static gboolean
is_route (const gchar *route, const gchar *path)
{
  if (strchr (route, '*'))
    return is_of_mount (route, path);
  if (g_str_equal (route, MOUNT_PATH) && is_of_mount (INSERT_PATH, path))
    return FALSE;
  return g_str_has_suffix (route, "/")
             ? g_str_has_prefix (path, route) && path[strlen (route)] != '\0'
             : g_str_equal (path, route);
}

// Finds the route of a request. Answers 404 or 405 and returns FALSE if there is none.
static gboolean
find_route (SoupServerMessage *message, const gchar *path, guint *route)
{
  const gchar *method = soup_server_message_get_method (message);
  g_autoptr (GString) allowed = g_string_new (NULL);
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
    api_fail (
        message, SOUP_STATUS_NOT_FOUND, NULL, "unknown path; /v1/openapi.json lists all paths");
  } else if (!found) {
    api_fail (
        message, SOUP_STATUS_METHOD_NOT_ALLOWED, NULL, "method not allowed; use %s", allowed->str);
    soup_message_headers_replace (
        soup_server_message_get_response_headers (message), "Allow", allowed->str);
  }
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
  // `rest` is "17" for a reader, and begins with a slash for a mount: "/cam".
  if (g_str_has_prefix (routes[i].path, MOUNT_PATH))
    request.rest = path + strlen (MOUNT_PATH) - 1;
  else if (g_str_has_suffix (routes[i].path, "/"))
    request.rest = path + strlen (routes[i].path);
  routes[i].handle (&request);
  // Without a status, the answer comes later.
  if (soup_server_message_get_status (message) && !g_str_equal (routes[i].method, "GET"))
    log_event ("api: %s %s: %u", routes[i].method, path, soup_server_message_get_status (message));
}

// ---- checks before the body ----

static gboolean
is_json (SoupMessageHeaders *headers)
{
  const gchar *type = soup_message_headers_get_content_type (headers, NULL);

  return type
         && (!g_ascii_strcasecmp (type, "application/json")
             || !g_ascii_strcasecmp (type, "application/merge-patch+json"));
}

static gboolean
takes_body (guint route)
{
  return g_str_equal (routes[route].method, "PUT") || g_str_equal (routes[route].method, "PATCH")
         || routes[route].handle == api_post_insertion;
}

static gboolean
is_small (SoupMessageHeaders *headers)
{
  return soup_message_headers_get_encoding (headers) != SOUP_ENCODING_CONTENT_LENGTH
         || soup_message_headers_get_content_length (headers) <= BODY_MAX;
}

// Sets the error body for requests that libsoup cannot parse and answers itself.
static void
on_started (SoupServer *soup, SoupServerMessage *message, gpointer unused)
{
  // libsoup 3.2 does not notice that an idle connection was closed, and keeps it forever.
  soup_message_headers_replace (
      soup_server_message_get_response_headers (message), "Connection", "close");
  api_prepare_failure (message, "malformed HTTP request");
}

// Checks an admitted request before its body is read.
static void
check_admitted (Api *self, SoupServerMessage *message, const gchar *path)
{
  SoupMessageHeaders *headers = soup_server_message_get_request_headers (message);
  guint route;

  if (!find_route (message, path, &route)) {
    // answered
  } else if (soup_message_headers_get_encoding (headers) == SOUP_ENCODING_CHUNKED) {
    api_fail (message, SOUP_STATUS_LENGTH_REQUIRED, NULL, "the body needs a Content-Length header");
  } else if (!is_small (headers)) {
    api_fail (message, SOUP_STATUS_REQUEST_ENTITY_TOO_LARGE, NULL,
        "the body is larger than %u bytes", BODY_MAX);
  } else if (takes_body (route) && !is_json (headers)) {
    api_fail (
        message, SOUP_STATUS_UNSUPPORTED_MEDIA_TYPE, "Content-Type", "must be application/json");
  } else {
    return;
  }
  api_guard_discard_body (message);
}

// libsoup would cut every answer into the ranges that the client names: any number of them, and
// with a critical warning beyond its ends. Without the header, it sends the whole answer.
// Recordings choose the range themselves.
static void
drop_ranges (SoupServerMessage *message, const gchar *path)
{
  if (!g_str_equal (path, RECORDING_PATH))
    soup_message_headers_remove (soup_server_message_get_request_headers (message), "Range");
}

// Called before the body is read.
static void
on_headers (SoupServer *soup, SoupServerMessage *message, const char *path, GHashTable *query,
    gpointer self)
{
  drop_ranges (message, path);
  api_guard_check (self, message, path, check_admitted);
}

// ---- construction ----

// libsoup does not listen itself: it would stop listening for good when it cannot accept a client,
// and 3.2 keeps the socket of each client forever.

// Gives a client to libsoup. Its bytes are HTTP, whether TLS carries them or not.
static void
serve (Api *self, GSocket *client, GSocketAddress *peer)
{
  g_autoptr (GSocketAddress) own = g_socket_get_local_address (client, NULL);
  g_autoptr (GSocketConnection) stream = g_socket_connection_factory_create_connection (client);
  g_autoptr (GSocketAddress) known = api_limits_dup_peer (peer, client);
  GError *error = NULL;

  tls_front_switch (client); // does nothing without TLS
  if (!soup_server_accept_iostream (self->soup, G_IO_STREAM (stream), own, known, &error)) {
    log_event ("api: a connection was refused: %s", error->message);
    g_error_free (error);
  }
}

// A client has finished the handshake of TLS.
static void
on_tls_client (GSocket *client, gpointer data)
{
  serve (data, client, tls_front_get_peer (client));
  g_object_unref (client);
}

static void
on_tls_connection (GSocket *listening, gpointer data)
{
  Api *self = data;

  tls_front_accept (proxy_get_tls (self->proxy), listening, on_tls_client, self);
}

static void
on_connection (GSocket *listening, gpointer data)
{
  g_autoptr (GSocket) client = g_socket_accept (listening, NULL, NULL);
  g_autoptr (GSocketAddress) peer = client ? g_socket_get_remote_address (client, NULL) : NULL;

  if (peer) {
    g_socket_set_option (client, IPPROTO_TCP, TCP_NODELAY, TRUE, NULL);
    serve (data, client, peer);
  }
}

static gboolean
listen_on (Api *self, const ProxyConfig *config, GError **error)
{
  const ListenAddress *listen = &config->api;

  self->tls = config->tls.api && proxy_get_tls (self->proxy);
  self->port = port_new (listen->address, listen->port,
      self->tls ? on_tls_connection : on_connection, NULL, self, error);
  if (!self->port)
    g_prefix_error (error, "api: ");
  return self->port != NULL;
}

Api *
api_new (const ProxyConfig *config, Proxy *proxy, Reload *reload, Cluster *cluster, GError **error)
{
  Api *self = g_new0 (Api, 1);

  self->soup = soup_server_new ("server-header", "rtsp-proxy", NULL);
  self->proxy = proxy;
  self->reload = reload;
  self->cluster = cluster;
  self->address = g_strdup (config->api.address);
  self->token = g_strdup (config->api_token);
  self->hosts = g_strdupv (config->hosts);
  self->started = g_get_monotonic_time ();
  self->ending = g_cancellable_new ();
  api_limits_watch (self->soup);
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
  while (self->n_drawing > 0 || self->n_asking > 0 || self->n_sending > 0)
    g_main_context_iteration (NULL, TRUE);
  g_clear_pointer (&self->port, port_free);
  soup_server_disconnect (self->soup);
  g_object_unref (self->soup);
  g_object_unref (self->ending);
  g_free (self->address);
  g_free (self->token);
  g_strfreev (self->hosts);
  g_free (self);
}

gchar *
api_dup_base_url (Api *self)
{
  const ListenAddress listen = { self->address, port_get_number (self->port) };

  return listen_address_dup_url (&listen, self->tls ? "https" : "http");
}
