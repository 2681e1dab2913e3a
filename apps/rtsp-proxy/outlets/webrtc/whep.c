// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/whep.h"

#include <string.h>

#include "access/peer.h"
#include "mounts/start_wait.h"
#include "outlets/http/http_answer.h"
#include "outlets/http/http_refusal.h"
#include "outlets/webrtc/webrtc_choice.h"
#include "readers/reader_limit.h"

#define SUFFIX "whep"
#define SDP "application/sdp"
#define FRAGMENT "application/trickle-ice-sdpfrag"

typedef struct {
  HttpReply reply;
  const HttpAsked *asked;
  Whep *whep;
  GString *headers;
  guint status; // 0: not known yet
  gchar *reason;
  const gchar *type; // of the body; NULL: a text
  GBytes *body;      // NULL: none

  // Of an offer.
  SdpOffer *offer;
  Presentation *presentation; // NULL: it is not in use
  WeirLayerSet layers;        // that the reader asks for
  GError *unfit;              // why it is a rendition's, for which nobody asked; NULL: it is none
  StartWait *wait;
  gboolean is_counted;
} Reply;

// ---- answers ----

// Takes ownership of the reason, which may be NULL.
static void
answer_with (Reply *self, guint status, gchar *reason)
{
  self->status = status;
  self->reason = reason;
  if (status == SOUP_STATUS_SERVICE_UNAVAILABLE || status == SOUP_STATUS_CONFLICT)
    http_answer_add (self->headers, "Retry-After", HTTP_RETRY_AFTER);
}

static void
answer_body (Reply *self, guint status, const gchar *type, gchar *text)
{
  self->status = status;
  self->type = type;
  self->body = text ? g_bytes_new_take (text, strlen (text)) : NULL;
}

// Takes ownership of the error.
static void
answer_error (Reply *self, guint status, GError *error)
{
  answer_with (self, status, g_strdup (error->message));
  g_error_free (error);
}

static void
answer_allow (Reply *self, const gchar *allow)
{
  http_answer_add (self->headers, "Allow", allow);
  answer_with (self, SOUP_STATUS_METHOD_NOT_ALLOWED, NULL);
}

static gboolean
has_type (Reply *self, const gchar *type)
{
  const gchar *given = soup_message_headers_get_content_type (self->asked->request->headers, NULL);

  if (given && !g_ascii_strcasecmp (given, type))
    return TRUE;
  answer_with (self, SOUP_STATUS_UNSUPPORTED_MEDIA_TYPE,
      g_strdup_printf ("the Content-Type must be %s", type));
  return FALSE;
}

// ---- offers ----

// A reverse proxy says by which scheme the client came. Clients such as FFmpeg take only a whole
// URL.
static void
add_location (Reply *self, const WhepSession *session)
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
add_servers (Reply *self)
{
  for (gchar **each = self->whep->stun_servers; each && *each; each++) {
    gchar *link = g_strdup_printf ("<%s>; rel=\"ice-server\"", *each);

    http_answer_add (self->headers, "Link", link);
    g_free (link);
  }
}

static guint32
list_codecs (const SdpOffer *offer)
{
  guint32 codecs = 0;

  for (guint i = 0; i < offer->media->len; i++) {
    const OfferMedia *line = g_ptr_array_index (offer->media, i);

    for (guint j = 0; line->is_usable && line->receives && j < line->formats->len; j++) {
      const gchar *name = sdp_answer_get_encoding (&g_array_index (line->formats, OfferFormat, j));

      codecs |= name ? webrtc_codec_from_name (name) : 0;
    }
  }
  return codecs;
}

// The session has what the request had: its use, its place and its offer.
static void
answer_session (Reply *self, WhepSession *session)
{
  gchar *text = webrtc_reader_write_answer (session->reader);

  self->offer = NULL;
  self->presentation = NULL;
  self->is_counted = FALSE;
  if (!text) {
    answer_with (self, SOUP_STATUS_SERVICE_UNAVAILABLE, NULL);
    return;
  }
  add_location (self, session);
  http_answer_add (self->headers, "ETag", session->etag);
  add_servers (self);
  answer_body (self, SOUP_STATUS_CREATED, SDP, text);
}

// Takes ownership of the error.
static void
answer_problem (Reply *self, guint status, GError *error)
{
  if (self->unfit) {
    answer_with (self, SOUP_STATUS_NOT_ACCEPTABLE,
        g_strdup_printf ("%s; the rendition: %s", self->unfit->message, error->message));
    g_error_free (error);
  } else {
    answer_error (self, status, error);
  }
}

// Begins to wait for a rendition of the mount, if there is one that fits, and the client has asked
// for no certain form of the mount. Otherwise answers. Takes ownership of the error.
static void
take_rendition (Reply *self, GError *error)
{
  const HttpAsked *asked = self->asked;
  Presentation *own = self->presentation;
  Resolved rendition = { .mount = asked->resolved->mount };
  GError *problem = NULL;
  gchar *choices = NULL;

  if (!self->unfit && !asked->resolved->choices && !asked->resolved->is_below
      && weir_layer_set_equal (self->layers, WEIR_LAYER_SET_ALL))
    choices = webrtc_choice_find_rendition (own, list_codecs (self->offer), &self->layers);
  if (!choices) {
    answer_problem (self, SOUP_STATUS_NOT_ACCEPTABLE, error);
    return;
  }
  rendition.choices = choices;
  self->unfit = error;
  self->presentation = mounts_use (&rendition, &problem);
  presentation_leave (own);
  g_clear_pointer (&self->wait, start_wait_free);
  if (self->presentation)
    self->wait = start_wait_new (self->presentation, asked->wake, asked->wake_data);
  else
    answer_problem (self, SOUP_STATUS_SERVICE_UNAVAILABLE, problem);
  g_free (choices);
}

// Takes ownership of the error.
static void
refuse (Reply *self, GError *error)
{
  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED))
    take_rendition (self, error);
  else
    answer_problem (self, SOUP_STATUS_SERVICE_UNAVAILABLE, error);
}

static void
begin_session (Reply *self)
{
  const HttpAsked *asked = self->asked;
  const gchar *mount = mount_get_path (asked->resolved->mount);
  GSocket *v4 = webrtc_port_get_socket (self->whep->port, G_SOCKET_FAMILY_IPV4);
  GSocket *v6 = webrtc_port_get_socket (self->whep->port, G_SOCKET_FAMILY_IPV6);
  const HttpRefusal *problem;
  WhepSession session = { 0 };
  WebrtcReaderParts parts;
  GError *error = NULL;
  WebrtcStream *stream =
      webrtc_stream_get (self->presentation, list_codecs (self->offer), v4, v6, &error);

  if (!stream) {
    refuse (self, error);
    return;
  }
  parts = (WebrtcReaderParts) { self->presentation, stream, self->offer, self->layers, mount,
    asked->peer };
  problem = http_refusal_of_reader (asked->resolved->mount);
  if (problem) {
    refusals_note (problem->reason, asked->peer, "%s", problem->text);
    answer_with (self, problem->status, g_strdup (problem->text));
  } else if (whep_sessions_add (self->whep->sessions, &parts, asked->address, &session, &error)) {
    answer_session (self, &session);
  } else {
    reader_limit_leave (mount);
    refuse (self, error);
  }
  whep_session_clear (&session);
  webrtc_stream_unref (stream);
}

static void
decide (Reply *self)
{
  GError *error = NULL;

  switch (presentation_ask (self->presentation, &error)) {
    case PRESENTATION_READY:
      begin_session (self);
      break;
    case PRESENTATION_DOWN:
      answer_problem (self, SOUP_STATUS_CONFLICT, error);
      break;
    default:
      answer_problem (self, SOUP_STATUS_CONFLICT,
          g_error_new_literal (G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
              "the upstream takes too long to start (start-timeout)"));
      break;
  }
}

static gboolean
read_offer (Reply *self)
{
  GBytes *body = self->asked->request->body;
  GError *error = NULL;

  if (!has_type (self, SDP))
    return FALSE;
  self->offer =
      body ? sdp_offer_new (g_bytes_get_data (body, NULL), g_bytes_get_size (body), &error) : NULL;
  if (error)
    answer_error (self, SOUP_STATUS_BAD_REQUEST, error);
  else if (!body)
    answer_with (self, SOUP_STATUS_BAD_REQUEST, g_strdup ("the request has no offer"));
  else if (!sdp_answer_receives (self->offer))
    answer_with (self, SOUP_STATUS_BAD_REQUEST,
        g_strdup ("the offer must have a line m= with a=recvonly or a=sendrecv"));
  return self->status == 0;
}

static void
take_offer (Reply *self)
{
  const HttpAsked *asked = self->asked;
  GError *error = NULL;
  gchar *full;

  if (!read_offer (self))
    return;
  full = whep_sessions_enter (self->whep->sessions, asked->address, asked->peer);
  if (full) {
    answer_with (self, SOUP_STATUS_SERVICE_UNAVAILABLE, full);
    return;
  }
  self->is_counted = TRUE;
  self->layers = asked->demand->layers;
  self->presentation = mounts_use (asked->resolved, &error);
  if (self->presentation)
    self->wait = start_wait_new (self->presentation, asked->wake, asked->wake_data);
  else
    answer_error (self, SOUP_STATUS_SERVICE_UNAVAILABLE, error);
}

// ---- sessions ----

// Returns what the header If-Match lets do: 0, or the status of the refusal.
static guint
check_match (Reply *self, const WhepSession *session)
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
restart (Reply *self, WhepSession *session, const gchar *ufrag)
{
  gchar *text = webrtc_reader_restart (session->reader, ufrag);

  if (!text) {
    answer_with (self, SOUP_STATUS_NOT_FOUND, g_strdup ("the session is over"));
    return;
  }
  whep_sessions_renew (self->whep->sessions, session);
  http_answer_add (self->headers, "ETag", session->etag);
  answer_body (self, SOUP_STATUS_OK, FRAGMENT, text);
}

// All candidates of the proxy are in its answer, and those of the client are not needed: it sends
// to them.
static void
patch (Reply *self, WhepSession *session)
{
  GBytes *body = self->asked->request->body;
  gchar *ufrag = NULL;
  GError *error = NULL;
  gboolean restarts;
  guint problem;

  if (!has_type (self, FRAGMENT))
    return;
  if (!body) {
    answer_with (self, SOUP_STATUS_BAD_REQUEST, g_strdup ("the request has no fragment of SDP"));
    return;
  }
  if (!webrtc_reader_read_fragment (session->reader, body, &ufrag, &error)) {
    answer_error (self,
        g_error_matches (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED)
            ? SOUP_STATUS_UNPROCESSABLE_ENTITY
            : SOUP_STATUS_BAD_REQUEST,
        error);
    return;
  }
  restarts = ufrag && !webrtc_reader_is_same (session->reader, ufrag);
  problem = check_match (self, session);
  if (problem)
    answer_with (self, problem, g_strdup ("the header If-Match must have the session's ETag"));
  else if (restarts)
    restart (self, session, ufrag);
  else
    answer_with (self, SOUP_STATUS_NO_CONTENT, NULL);
  g_free (ufrag);
}

static void
take_session (Reply *self, const gchar *name)
{
  WhepSession session = { 0 };

  if (!whep_sessions_find (self->whep->sessions, name, &session)) {
    answer_with (self, SOUP_STATUS_NOT_FOUND, g_strdup ("the session is over"));
    return;
  }
  switch (self->asked->request->kind) {
    case HTTP_PATCH:
      patch (self, &session);
      break;
    case HTTP_DELETE:
      webrtc_reader_end (session.reader, "the client has ended the session");
      answer_with (self, SOUP_STATUS_OK, NULL);
      break;
    default:
      answer_allow (self, "PATCH, DELETE, OPTIONS");
      break;
  }
  whep_session_clear (&session);
}

// ---- the reply ----

static gboolean
begin (HttpReply *reply, HttpHead *head, gint64 now_ns, gint64 *wake_ns)
{
  Reply *self = (Reply *) reply;

  while (self->status == 0) {
    if (!start_wait_is_over (self->wait))
      return FALSE;
    decide (self);
  }
  *head = (HttpHead) { self->status, self->type, self->reason, head->headers,
    self->body ? (gint64) g_bytes_get_size (self->body) : 0 };
  g_string_append_len (head->headers, self->headers->str, (gssize) self->headers->len);
  http_answer_add (head->headers, "Cache-Control", "no-store");
  return TRUE;
}

static GBytes *
next (HttpReply *reply, gboolean *ended)
{
  *ended = TRUE;
  return g_bytes_ref (((Reply *) reply)->body);
}

static void
free_reply (HttpReply *reply)
{
  Reply *self = (Reply *) reply;

  g_clear_pointer (&self->wait, start_wait_free);
  g_clear_error (&self->unfit);
  g_clear_pointer (&self->presentation, presentation_leave);
  if (self->is_counted)
    whep_sessions_leave (self->whep->sessions, self->asked->address);
  g_clear_pointer (&self->offer, sdp_offer_free);
  g_clear_pointer (&self->body, g_bytes_unref);
  g_string_free (self->headers, TRUE);
  g_free (self->reason);
  g_free (self);
}

static void
take_endpoint (Reply *self)
{
  const Resolved *resolved = self->asked->resolved;

  if (!resolved->mount || resolved->title) {
    answer_with (self, SOUP_STATUS_NOT_FOUND, NULL);
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
      answer_with (self, SOUP_STATUS_NO_CONTENT, NULL);
      break;
    default:
      answer_allow (self, "GET, HEAD, POST, OPTIONS");
      break;
  }
}

static HttpReply *
answer (gpointer whep, const HttpAsked *asked)
{
  static const HttpReplyOps ops = { .begin = begin, .next = next, .free = free_reply };
  const gchar *end = http_route_find_suffix (asked->request->target, SUFFIX);
  Reply *self = g_new0 (Reply, 1);

  self->reply.ops = &ops;
  self->asked = asked;
  self->whep = whep;
  self->headers = g_string_new (NULL);
  if (end[strlen (SUFFIX)] == '/')
    take_session (self, end + strlen (SUFFIX) + 1);
  else
    take_endpoint (self);
  return &self->reply;
}

// The name of a session is secret, so access is asked for before there is one only.
static gchar *
dup_target (gpointer whep, const gchar *target)
{
  const gchar *end = http_route_find_suffix (target, SUFFIX);
  const gchar *rest = end + strlen (SUFFIX);

  return *rest == '/' ? NULL : g_strdup_printf ("%.*s%s", (int) (end - target) - 1, target, rest);
}

HttpRoute
whep_get_route (Whep *whep)
{
  return (HttpRoute) { .suffix = SUFFIX,
    .action = ACCESS_READ,
    .dup_target = dup_target,
    .answer = answer,
    .outlet = whep,
    .is_shared = TRUE,
    .methods = HTTP_GET | HTTP_HEAD | HTTP_POST | HTTP_PATCH | HTTP_DELETE,
    .given = "Authorization, Content-Type, If-Match",
    .exposed = "Location, ETag, Link, Retry-After",
    .accepts = SDP };
}
