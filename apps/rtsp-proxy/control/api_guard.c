// SPDX-License-Identifier: LGPL-2.1-or-later
#include "control/api_guard.h"

#include "config/host_names.h"
#include "text/demand.h"

#include <string.h>

// Compares two texts of the same length, in a time that does not depend on where they differ.
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
  g_autofree gchar *a = NULL, *b = NULL;

  if (!given || g_ascii_strncasecmp (given, "Bearer ", 7) != 0)
    return FALSE;
  // The checksums have the same length for every token that a client sends.
  a = g_compute_checksum_for_string (G_CHECKSUM_SHA256, self->token, -1);
  b = g_compute_checksum_for_string (G_CHECKSUM_SHA256, given + 7, -1);
  return is_same (a, b);
}

// Reports whether the Origin header, which browsers send, is missing or names the API itself.
static gboolean
is_our_page (Api *self, SoupMessageHeaders *headers)
{
  const gchar *scheme = self->tls ? "https://" : "http://";
  const gchar *origin = soup_message_headers_get_one (headers, "Origin");
  const gchar *host = soup_message_headers_get_one (headers, "Host");

  return !origin
         || (g_str_has_prefix (origin, scheme) && host
             && g_str_equal (origin + strlen (scheme), host));
}

void
api_guard_discard_body (SoupServerMessage *message)
{
  soup_message_body_set_accumulate (soup_server_message_get_request_body (message), FALSE);
}

// A client that has sent no secret must call this machine by its name.
static void
admit (
    Api *self, SoupServerMessage *message, const gchar *path, ApiAdmitted next, gboolean has_secret)
{
  SoupMessageHeaders *headers = soup_server_message_get_request_headers (message);

  if (has_secret || host_names_take (self->hosts, soup_message_headers_get_one (headers, "Host"))) {
    next (self, message, path);
    return;
  }
  api_fail (message, SOUP_STATUS_FORBIDDEN, "Host", "%s", HOST_NAMES_WRONG);
  api_guard_discard_body (message);
}

// ---- access ----

typedef struct {
  Api *api;
  SoupServerMessage *message;
  gchar *path;
  ApiAdmitted next;
  AccessDecision *asked;
  gulong on_finished;
  gboolean left; // the client has closed the connection
} Asking;

static void
asking_free (Asking *self)
{
  g_clear_signal_handler (&self->on_finished, self->message);
  g_clear_pointer (&self->asked, access_decision_unref);
  g_object_unref (self->message);
  g_free (self->path);
  g_free (self);
}

#define ASK_TOKEN "the token is missing or wrong; send Authorization: Bearer TOKEN"

static void
challenge (Asking *self)
{
  SoupMessageHeaders *headers = soup_server_message_get_response_headers (self->message);
  const gchar *const *lines = access_decision_get_challenges (self->asked);
  gboolean has_users = *lines != NULL;

  api_fail (self->message, SOUP_STATUS_UNAUTHORIZED, NULL,
      has_users ? "the credentials are missing or wrong; send those of a user who may do this"
                : ASK_TOKEN);
  soup_message_headers_remove (headers, "WWW-Authenticate");
  if (self->api->token)
    soup_message_headers_append (headers, "WWW-Authenticate", "Bearer");
  for (; *lines; lines++)
    soup_message_headers_append (headers, "WWW-Authenticate", *lines);
}

static void
fail_busy (Asking *self)
{
  api_fail (self->message, SOUP_STATUS_SERVICE_UNAVAILABLE, NULL, "%s; try again later",
      access_decision_get_reason (self->asked));
  soup_message_headers_replace (
      soup_server_message_get_response_headers (self->message), "Retry-After", "10");
}

static void
answer (Asking *self)
{
  AccessVerdict verdict = access_decision_get_verdict (self->asked);

  if (verdict == ACCESS_ADMITTED) {
    admit (self->api, self->message, self->path, self->next,
        access_decision_get_basis (self->asked) == ACCESS_BY_SECRET);
    return;
  }
  if (verdict == ACCESS_ASKED
      || (verdict == ACCESS_REFUSED && self->api->token && !access_decision_get_user (self->asked)))
    challenge (self);
  else if (verdict == ACCESS_REFUSED)
    api_fail (self->message, SOUP_STATUS_FORBIDDEN, NULL, "this client may not do this");
  else
    fail_busy (self);
  api_guard_discard_body (self->message);
}

static gboolean
answer_later (gpointer data)
{
  Asking *self = data;

  self->api->n_asking--;
  if (!self->left) {
    answer (self);
    soup_server_message_unpause (self->message);
  }
  asking_free (self);
  return G_SOURCE_REMOVE;
}

static void
on_decided (AccessDecision *decided, gpointer asking)
{
  g_idle_add_full (G_PRIORITY_DEFAULT, answer_later, asking, NULL);
}

static void
on_finished (SoupServerMessage *message, gpointer asking)
{
  ((Asking *) asking)->left = TRUE;
}

static AccessPeer *
make_peer (SoupServerMessage *message)
{
  GSocketAddress *address = soup_server_message_get_remote_address (message);
  g_autofree gchar *ip = NULL;

  if (G_IS_INET_SOCKET_ADDRESS (address))
    ip = g_inet_address_to_string (
        g_inet_socket_address_get_address (G_INET_SOCKET_ADDRESS (address)));
  return access_peer_new (ip ? ip : "", g_uri_get_scheme (soup_server_message_get_uri (message)));
}

static void
ask (Asking *self, AccessAction action)
{
  SoupMessageHeaders *headers = soup_server_message_get_request_headers (self->message);
  const gchar *query = g_uri_get_query (soup_server_message_get_uri (self->message));
  g_autofree gchar *url = g_strconcat ("/?", query, NULL);
  Demand *demand = demand_new (url);
  AccessRequest request = { .action = action,
    .path = self->path,
    .query = demand->query,
    .token = demand->token,
    .user_agent = soup_message_headers_get_one (headers, "User-Agent"),
    .method = soup_server_message_get_method (self->message),
    .authorization = soup_message_headers_get_one (headers, "Authorization") };
  AccessPeer *peer = make_peer (self->message);

  self->asked = access_ask (proxy_get_access (self->api->proxy), peer, &request, on_decided, self);
  access_peer_unref (peer);
  demand_free (demand);
}

// Refuses a request if only the token could admit it.
static void
ask_token (SoupServerMessage *message, Api *api, AccessAction action, const gchar *path)
{
  SoupMessageHeaders *headers = soup_server_message_get_request_headers (message);
  AccessPeer *peer = make_peer (message);

  if (soup_message_headers_get_one (headers, "Authorization"))
    access_note_refusal (proxy_get_access (api->proxy), peer, action, path, "wrong token");
  access_peer_unref (peer);
  api_fail (message, SOUP_STATUS_UNAUTHORIZED, NULL, ASK_TOKEN);
  soup_message_headers_replace (
      soup_server_message_get_response_headers (message), "WWW-Authenticate", "Bearer");
  api_guard_discard_body (message);
}

static void
ask_door (
    Api *api, SoupServerMessage *message, const gchar *path, ApiAdmitted next, AccessAction action)
{
  Asking *self = g_new0 (Asking, 1);

  self->api = api;
  self->message = g_object_ref (message);
  self->path = g_strdup (path);
  self->next = next;
  ask (self, action);
  if (!access_decision_is_later (self->asked)) {
    answer (self);
    asking_free (self);
    return;
  }
  self->on_finished = g_signal_connect (message, "finished", G_CALLBACK (on_finished), self);
  api->n_asking++;
  soup_server_message_pause (message);
}

// Reports whether a request needs no secret: a supervisor that asks whether the proxy runs has
// none. One that sends a secret is checked, so that a wrong one is noticed.
static gboolean
is_open (SoupMessageHeaders *headers, const gchar *path)
{
  return g_str_equal (path, "/v1/health")
         && !soup_message_headers_get_one (headers, "Authorization");
}

void
api_guard_check (Api *api, SoupServerMessage *message, const gchar *path, ApiAdmitted next)
{
  SoupMessageHeaders *headers = soup_server_message_get_request_headers (message);
  AccessAction action = g_str_equal (path, "/metrics") ? ACCESS_METRICS : ACCESS_API;

  if (!is_our_page (api, headers)) {
    api_fail (
        message, SOUP_STATUS_FORBIDDEN, "Origin", "web pages of other sites may not use the API");
    api_guard_discard_body (message);
  } else if (api->token && has_token (api, headers)) {
    admit (api, message, path, next, TRUE);
  } else if (is_open (headers, path)
             || !access_is_guarded (proxy_get_access (api->proxy), action)) {
    admit (api, message, path, next, FALSE);
  } else if (api->token && !access_takes_credentials (proxy_get_access (api->proxy))) {
    ask_token (message, api, action, path);
  } else {
    ask_door (api, message, path, next, action);
  }
}
