// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/webrtc_reply.h"

#include <string.h>

#include "access/peer.h"
#include "outlets/http/http_answer.h"

#define SDP "application/sdp"
#define FRAGMENT "application/trickle-ice-sdpfrag"

// ---- answers ----

void
webrtc_reply_answer (WebrtcReply *self, guint status, gchar *reason)
{
  self->status = status;
  self->reason = reason;
  if (status == SOUP_STATUS_SERVICE_UNAVAILABLE || status == SOUP_STATUS_CONFLICT)
    http_answer_add (self->headers, "Retry-After", HTTP_RETRY_AFTER);
}

static void
answer_body (WebrtcReply *self, guint status, const gchar *type, gchar *text)
{
  self->status = status;
  self->type = type;
  self->body = text ? g_bytes_new_take (text, strlen (text)) : NULL;
}

void
webrtc_reply_answer_error (WebrtcReply *self, guint status, GError *error)
{
  webrtc_reply_answer (self, status, g_strdup (error->message));
  g_error_free (error);
}

static void
answer_allow (WebrtcReply *self, const gchar *allow)
{
  http_answer_add (self->headers, "Allow", allow);
  webrtc_reply_answer (self, SOUP_STATUS_METHOD_NOT_ALLOWED, NULL);
}

static gboolean
has_type (WebrtcReply *self, const gchar *type)
{
  const gchar *given = soup_message_headers_get_content_type (self->asked->request->headers, NULL);

  if (given && !g_ascii_strcasecmp (given, type))
    return TRUE;
  webrtc_reply_answer (self, SOUP_STATUS_UNSUPPORTED_MEDIA_TYPE,
      g_strdup_printf ("the Content-Type must be %s", type));
  return FALSE;
}

// ---- offers ----

// A reverse proxy says by which scheme the client came. Clients such as FFmpeg take only a whole
// URL.
static void
add_location (WebrtcReply *self, const WebrtcEntry *session)
{
  const HttpAsked *asked = self->asked;
  const gchar *host = http_request_get (asked->request, "Host");
  const gchar *scheme = http_request_get (asked->request, "X-Forwarded-Proto");
  gchar *path = g_strndup (asked->request->target, strcspn (asked->request->target, "?"));
  gchar *url;

  if (!scheme || (strcmp (scheme, "http") && strcmp (scheme, "https")))
    scheme = access_peer_has_tls (asked->visitor) ? "https" : "http";
  url = host ? g_strdup_printf ("%s://%s%s/%s", scheme, host, path, session->name)
             : g_strdup_printf ("%s/%s", path, session->name);
  http_answer_add (self->headers, "Location", url);
  g_free (url);
  g_free (path);
}

static void
add_servers (WebrtcReply *self)
{
  for (gchar **each = self->endpoints->stun_servers; each && *each; each++) {
    gchar *link = g_strdup_printf ("<%s>; rel=\"ice-server\"", *each);

    http_answer_add (self->headers, "Link", link);
    g_free (link);
  }
}

gboolean
webrtc_reply_read_offer (WebrtcReply *self)
{
  GBytes *body = self->asked->request->body;
  GError *error = NULL;

  if (!has_type (self, SDP))
    return FALSE;
  self->offer =
      body ? sdp_offer_new (g_bytes_get_data (body, NULL), g_bytes_get_size (body), &error) : NULL;
  if (error)
    webrtc_reply_answer_error (self, SOUP_STATUS_BAD_REQUEST, error);
  else if (!body)
    webrtc_reply_answer (self, SOUP_STATUS_BAD_REQUEST, g_strdup ("the request has no offer"));
  return self->status == 0;
}

gboolean
webrtc_reply_enter (WebrtcReply *self)
{
  gchar *full =
      webrtc_clients_enter (self->endpoints->clients, self->asked->address, self->asked->peer);

  self->is_counted = !full;
  if (full)
    webrtc_reply_answer (self, SOUP_STATUS_SERVICE_UNAVAILABLE, full);
  return !full;
}

void
webrtc_reply_answer_session (WebrtcReply *self, WebrtcClient *client)
{
  WebrtcEntry session;
  gchar *text;

  webrtc_clients_add (self->endpoints->clients, client, self->asked->address, &session);
  self->offer = NULL;
  self->is_counted = FALSE;
  text = webrtc_client_write_answer (session.client);
  if (text) {
    add_location (self, &session);
    http_answer_add (self->headers, "ETag", session.etag);
    add_servers (self);
    answer_body (self, SOUP_STATUS_CREATED, SDP, text);
  } else {
    webrtc_reply_answer (self, SOUP_STATUS_SERVICE_UNAVAILABLE, NULL);
  }
  webrtc_entry_clear (&session);
}

// ---- sessions ----

// Returns what the header If-Match lets do: 0, or the status of the refusal.
static guint
check_match (WebrtcReply *self, const WebrtcEntry *session)
{
  const gchar *match = http_request_get (self->asked->request, "If-Match");

  if (!match)
    return 428; // Precondition Required (RFC 6585)
  if (g_str_equal (match, session->etag) || g_str_equal (match, "*")
      || g_str_equal (match, "\"*\"")) // as the draft's example has it
    return 0;
  return SOUP_STATUS_PRECONDITION_FAILED;
}

static void
restart (WebrtcReply *self, WebrtcEntry *session, const gchar *ufrag)
{
  gchar *text = webrtc_client_restart (session->client, ufrag);

  if (!text) {
    webrtc_reply_answer (self, SOUP_STATUS_NOT_FOUND, g_strdup ("the session is over"));
    return;
  }
  webrtc_clients_renew (self->endpoints->clients, session);
  http_answer_add (self->headers, "ETag", session->etag);
  answer_body (self, SOUP_STATUS_OK, FRAGMENT, text);
}

// All candidates of the proxy are in its answer, and those of the client are not needed: it sends
// to them.
static void
patch (WebrtcReply *self, WebrtcEntry *session)
{
  GBytes *body = self->asked->request->body;
  gchar *ufrag = NULL;
  GError *error = NULL;
  gboolean restarts;
  guint problem;

  if (!has_type (self, FRAGMENT))
    return;
  if (!body) {
    webrtc_reply_answer (
        self, SOUP_STATUS_BAD_REQUEST, g_strdup ("the request has no fragment of SDP"));
    return;
  }
  if (!webrtc_client_read_fragment (session->client, body, &ufrag, &error)) {
    webrtc_reply_answer_error (self,
        g_error_matches (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED)
            ? SOUP_STATUS_UNPROCESSABLE_ENTITY
            : SOUP_STATUS_BAD_REQUEST,
        error);
    return;
  }
  restarts = ufrag && !webrtc_client_is_same (session->client, ufrag);
  problem = check_match (self, session);
  if (problem)
    webrtc_reply_answer (
        self, problem, g_strdup ("the header If-Match must have the session's ETag"));
  else if (restarts)
    restart (self, session, ufrag);
  else
    webrtc_reply_answer (self, SOUP_STATUS_NO_CONTENT, NULL);
  g_free (ufrag);
}

static void
take_session (WebrtcReply *self, const gchar *name)
{
  WebrtcEntry session = { 0 };

  if (!webrtc_clients_find (self->endpoints->clients, name, &session)) {
    webrtc_reply_answer (self, SOUP_STATUS_NOT_FOUND, g_strdup ("the session is over"));
    return;
  }
  switch (self->asked->request->kind) {
    case HTTP_PATCH:
      patch (self, &session);
      break;
    case HTTP_DELETE:
      webrtc_client_end (session.client, "the client has ended the session");
      webrtc_reply_answer (self, SOUP_STATUS_OK, NULL);
      break;
    default:
      answer_allow (self, "PATCH, DELETE, OPTIONS");
      break;
  }
  webrtc_entry_clear (&session);
}

// ---- the reply ----

void
webrtc_reply_fill (WebrtcReply *self, HttpHead *head)
{
  *head = (HttpHead) { self->status, self->type, self->reason, head->headers,
    self->body ? (gint64) g_bytes_get_size (self->body) : 0 };
  g_string_append_len (head->headers, self->headers->str, (gssize) self->headers->len);
  http_answer_add (head->headers, "Cache-Control", "no-store");
}

GBytes *
webrtc_reply_next (HttpReply *reply, gboolean *ended)
{
  *ended = TRUE;
  return g_bytes_ref (((WebrtcReply *) reply)->body);
}

void
webrtc_reply_init (
    WebrtcReply *self, const HttpReplyOps *ops, WebrtcEndpoints *endpoints, const HttpAsked *asked)
{
  self->reply.ops = ops;
  self->asked = asked;
  self->endpoints = endpoints;
  self->headers = g_string_new (NULL);
}

void
webrtc_reply_clear (WebrtcReply *self)
{
  if (self->is_counted)
    webrtc_clients_leave (self->endpoints->clients, self->asked->address);
  g_clear_pointer (&self->offer, sdp_offer_free);
  g_clear_pointer (&self->body, g_bytes_unref);
  g_string_free (self->headers, TRUE);
  g_free (self->reason);
}

static void
take_endpoint (WebrtcReply *self, void (*take_offer) (WebrtcReply *self))
{
  const Resolved *resolved = self->asked->resolved;

  if (!resolved->mount || resolved->title) {
    webrtc_reply_answer (self, SOUP_STATUS_NOT_FOUND, NULL);
    return;
  }
  switch (self->asked->request->kind) {
    case HTTP_POST:
      take_offer (self);
      break;
    case HTTP_HEAD:
      answer_body (self, SOUP_STATUS_OK, SDP, NULL);
      break;
    case HTTP_GET:
      webrtc_reply_answer (self, SOUP_STATUS_NO_CONTENT, NULL);
      break;
    default:
      answer_allow (self, "GET, HEAD, POST, OPTIONS");
      break;
  }
}

void
webrtc_reply_take (WebrtcReply *self, const gchar *suffix, void (*take_offer) (WebrtcReply *self))
{
  const gchar *end = http_route_find_suffix (self->asked->request->target, suffix);

  if (end[strlen (suffix)] == '/')
    take_session (self, end + strlen (suffix) + 1);
  else
    take_endpoint (self, take_offer);
}

// ---- routes ----

gchar *
webrtc_reply_dup_target (const gchar *target, const gchar *suffix)
{
  const gchar *end = http_route_find_suffix (target, suffix);
  const gchar *rest = end + strlen (suffix);

  return *rest == '/' ? NULL : g_strdup_printf ("%.*s%s", (int) (end - target) - 1, target, rest);
}

HttpRoute
webrtc_reply_make_route (WebrtcEndpoints *endpoints, const gchar *suffix, AccessAction action,
    gchar *(*dup_target) (gpointer endpoints, const gchar *target),
    HttpReply *(*answer) (gpointer endpoints, const HttpAsked *asked))
{
  return (HttpRoute) { .suffix = suffix,
    .action = action,
    .dup_target = dup_target,
    .answer = answer,
    .outlet = endpoints,
    .is_shared = TRUE,
    .methods = HTTP_GET | HTTP_HEAD | HTTP_POST | HTTP_PATCH | HTTP_DELETE,
    .given = "Authorization, Content-Type, If-Match",
    .exposed = "Location, ETag, Link, Retry-After",
    .accepts = SDP };
}
