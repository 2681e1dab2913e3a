// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "outlets/rtsp/requests.h"

#include "base/log.h"
#include "base/memory.h"
#include "outlets/rtsp/allowance.h"
#include "outlets/rtsp/answer.h"
#include "outlets/rtsp/setup_guard.h"
#include "readers/elsewhere.h"
#include "weir-rtsp.h"

#include <string.h>

#define NEED_URL                                                                                   \
  (GST_RTSP_DESCRIBE | GST_RTSP_ANNOUNCE | GST_RTSP_SETUP | GST_RTSP_PLAY | GST_RTSP_PAUSE         \
      | GST_RTSP_RECORD | GST_RTSP_TEARDOWN)

static LogLimit undeferred = { .burst = 10, .interval_ms = 1000 };

// Shared by all clients, because any peer can cause refusals as fast as it sends requests.
static LogLimit refusals = { .burst = 100, .interval_ms = 100 };

// ---- who may ----

typedef struct {
  GMainContext *context; // of the client's thread
  gpointer resume;
} Later;

static void
later_free (gpointer data)
{
  Later *later = data;

  if (later->resume)
    resume_free (later->resume);
  g_clear_pointer (&later->context, g_main_context_unref);
  g_free (later);
}

static gboolean
resume_later (gpointer data)
{
  resume_run (g_steal_pointer (&((Later *) data)->resume));
  return G_SOURCE_REMOVE;
}

// Resumes in the client's thread, because the decision may come before the request is put aside.
static void
on_decided (AccessDecision *decided, gpointer data)
{
  Later *later = data;
  g_autoptr (GMainContext) context = g_steal_pointer (&later->context);
  GSource *source = g_idle_source_new ();

  g_source_set_priority (source, G_PRIORITY_DEFAULT);
  g_source_set_callback (source, resume_later, later, later_free);
  g_source_attach (source, context);
  g_source_unref (source);
}

// Reports whether the request is a PLAY that seeks in a live stream by clock time. A position of
// the reader's own time is not before the one at which it was admitted.
static gboolean
seeks_into_the_past (RtspConnection *self, GstRTSPContext *ctx)
{
  const gchar *range =
      ctx->method == GST_RTSP_PLAY ? request_get_header (ctx, GST_RTSP_HDR_RANGE, 0) : NULL;
  g_autoptr (Content) content = range ? rtsp_connection_dup_content (self) : NULL;
  gboolean live = content && content->presentation;
  gint64 at;

  return live && demand_read_range (range, &at) == DEMAND_CLOCK;
}

// All other requests need a session, and only an admitted SETUP of the same connection makes one.
static gboolean
needs_permission (RtspConnection *self, GstRTSPContext *ctx)
{
  return ctx->method == GST_RTSP_DESCRIBE || ctx->method == GST_RTSP_SETUP
         || ctx->method == GST_RTSP_ANNOUNCE
         || (WITH_BROADCAST && broadcast_requests_asks_for_packets (ctx))
         || seeks_into_the_past (self, ctx);
}

// The SETUPs that follow a DESCRIBE with a delay have the delay too. `target` is NULL for none.
static AccessAction
find_action (const RequestTarget *request, const Resolved *target)
{
  GstRTSPMethod method = request->ctx->method;
  gint64 delay_ns = request->demand->delay_ns;

  if (method == GST_RTSP_ANNOUNCE)
    return ACCESS_PUBLISH;
  if (method == GST_RTSP_PLAY || (target && (target->title || !target->path)))
    return ACCESS_PLAYBACK;
  if (delay_ns < 0 && method == GST_RTSP_SETUP)
    delay_ns = request->connection->delay_ns;
  return delay_ns > 0 ? ACCESS_PLAYBACK : ACCESS_READ;
}

// Returns the token of a request. The URLs of a SETUP and a PLAY are made from the Content-Base of
// an answer, which has no query, so the token of the DESCRIBE counts for them.
static const gchar *
find_token (RtspConnection *self, GstRTSPContext *ctx, const Demand *demand)
{
  if (demand->token) {
    g_free (self->token);
    self->token = g_strdup (demand->token);
  }
  return demand->token || !request_get_header (ctx, GST_RTSP_HDR_AUTHORIZATION, 0) ? self->token
                                                                                   : NULL;
}

// A path that no mount serves is asked about too, so that only those who may read find out which
// paths exist.
static AccessDecision *
ask_access (RequestTarget *request)
{
  RtspConnection *connection = request->connection;
  GstRTSPContext *ctx = request->ctx;
  const Demand *demand = request->demand;
  const Resolved *target = request_target_get (request, NULL);
  AccessRequest asked = { .action = find_action (request, target),
    .path = demand->path,
    .mount = target ? resolved_get_mount_path (target) : NULL,
    .query = demand->query,
    .user_agent = request_get_header (ctx, GST_RTSP_HDR_USER_AGENT, 0),
    .method = gst_rtsp_method_as_text (ctx->method),
    .authorization = request_get_header (ctx, GST_RTSP_HDR_AUTHORIZATION, 0),
    .token = find_token (connection, ctx, demand) };
  Later *later = g_new0 (Later, 1);
  AccessDecision *result;

  later->context = g_main_context_ref (g_source_get_context (g_main_current_source ()));
  later->resume = resume_new (connection->client);
  result = access_ask (connection->access, connection->visitor, &asked, on_decided, later);
  if (!access_decision_is_later (result))
    later_free (later);
  return result;
}

static GstRTSPStatusCode
get_status (AccessDecision *asked, const gchar *const **challenges)
{
  switch (access_decision_get_verdict (asked)) {
    case ACCESS_ADMITTED:
      return GST_RTSP_STS_OK;
    case ACCESS_ASKED:
      *challenges = access_decision_get_challenges (asked);
      return GST_RTSP_STS_UNAUTHORIZED;
    case ACCESS_REFUSED:
      return GST_RTSP_STS_FORBIDDEN;
    case ACCESS_PENDING:
    case ACCESS_BUSY:
      break;
  }
  return GST_RTSP_STS_SERVICE_UNAVAILABLE;
}

// Returns OK if the client may, else the status to answer; for 401, sets `*challenges`. May put the
// request aside until that is decided.
static GstRTSPStatusCode
check_access (RequestTarget *request, const gchar *const **challenges)
{
  RtspConnection *connection = request->connection;
  GstRTSPContext *ctx = request->ctx;

  if (!needs_permission (connection, ctx))
    return GST_RTSP_STS_OK;
  if (weir_client_was_deferred (connection->client, ctx)) {
    // The request was admitted before, if it was put aside until its content is ready.
    return connection->waits_for_content ? GST_RTSP_STS_OK
                                         : get_status (connection->asked, challenges);
  }
  g_clear_pointer (&connection->asked, access_decision_unref);
  connection->waits_for_content = FALSE;
  connection->asked = ask_access (request);
  if (access_decision_is_later (connection->asked) && !weir_client_defer (connection->client, ctx))
    log_event_limited (&undeferred,
        "reader %s: a request over TLS cannot wait for its password to "
        "be checked",
        connection->peer);
  return get_status (connection->asked, challenges);
}

// ---- whether the content is ready ----

// Logs the error and returns the status to answer. Takes ownership of `error`.
static GstRTSPStatusCode
refuse_content (RtspConnection *self, GError *error)
{
  static const struct {
    gint code;
    GstRTSPStatusCode status;
  } known[] = {
    { G_IO_ERROR_BUSY, GST_RTSP_STS_SERVICE_UNAVAILABLE },
    { G_IO_ERROR_NO_SPACE, GST_RTSP_STS_NOT_ENOUGH_BANDWIDTH },
    { G_IO_ERROR_NOT_SUPPORTED, GST_RTSP_STS_UNSUPPORTED_MEDIA_TYPE },
    { G_IO_ERROR_PROXY_FAILED, GST_RTSP_STS_BAD_GATEWAY },
    { G_IO_ERROR_TIMED_OUT, GST_RTSP_STS_GATEWAY_TIMEOUT },
    { G_IO_ERROR_INVALID_DATA, GST_RTSP_STS_INTERNAL_SERVER_ERROR },
  };
  GstRTSPStatusCode status = GST_RTSP_STS_NOT_FOUND;

  for (gsize i = 0; i < G_N_ELEMENTS (known); i++) {
    if (g_error_matches (error, G_IO_ERROR, known[i].code))
      status = known[i].status;
  }
  log_event_limited (&refusals, "reader %s refused: %s", self->peer, error->message);
  g_free (self->full);
  self->full = status == GST_RTSP_STS_NOT_ENOUGH_BANDWIDTH ? g_strdup (error->message) : NULL;
  g_error_free (error);
  return status;
}

// Reports whether the current request was put aside until its content is ready.
static gboolean
has_waited (RtspConnection *self, GstRTSPContext *ctx)
{
  return self->waits_for_content && weir_client_was_deferred (self->client, ctx);
}

// Checks that the content is ready. Puts the request aside while the content starts; the request is
// then checked once more.
static GstRTSPStatusCode
check_ready (RtspConnection *self, GstRTSPContext *ctx, Content *content)
{
  GError *error = NULL;
  PresentationState state = content_ask (content, &error);

  if (state == PRESENTATION_READY)
    return GST_RTSP_STS_OK;
  if (state == PRESENTATION_STARTING && !has_waited (self, ctx)
      && weir_client_defer (self->client, ctx)) {
    self->waits_for_content = TRUE;
    content_wait (content, resume_run, resume_new (self->client));
    return GST_RTSP_STS_SERVICE_UNAVAILABLE;
  }
  // The next request opens the title again.
  if (content->title)
    rtsp_connection_use (self, NULL);
  if (!error)
    g_set_error (
        &error, G_IO_ERROR, G_IO_ERROR_BUSY, NO_MEDIA_PROBLEM, content_get_label (content));
  return refuse_content (self, error);
}

// Checks that the reader's own presentation of a title is ready, if it is to have one.
static GstRTSPStatusCode
check_own (RequestTarget *request, const Content *content)
{
  RtspConnection *connection = request->connection;
  GError *error = NULL;
  g_autoptr (Content) own = request_target_use_own (request, content, &error);

  if (!own)
    return error ? refuse_content (connection, error) : GST_RTSP_STS_OK;
  connection->waits_for_content = FALSE; // it waits for another one now
  return check_ready (connection, request->ctx, own);
}

// Reports whether a SETUP needs a session, and the connection can have no other.
static gboolean
lacks_session (RtspConnection *self, GstRTSPContext *ctx)
{
  GstRTSPSessionPool *pool;
  gboolean full;

  if (ctx->method != GST_RTSP_SETUP || ctx->session)
    return FALSE;
  pool = gst_rtsp_client_get_session_pool (self->client);
  full =
      gst_rtsp_session_pool_get_n_sessions (pool) >= gst_rtsp_session_pool_get_max_sessions (pool);
  g_object_unref (pool);
  return full;
}

// Uses the target of the request. The first SETUP of a connection starts no choice: its URL comes
// from a description, and who wants the choice has asked for that.
static Content *
use_target (RequestTarget *request, GError **error)
{
  const Resolved *target = request_target_make (request, error);
  GstRTSPContext *ctx = request->ctx;

  if (!target)
    return NULL;
  if (ctx->method == GST_RTSP_SETUP && !ctx->session && target->path
      && !mount_has_path (target->mount, target->path)) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "SETUP: no DESCRIBE has started %s",
        request->demand->url);
    return NULL;
  }
  return request_target_use (request, error);
}

// Uses the content of an admitted DESCRIBE or SETUP, so that gst-rtsp-server neither makes media
// for an unknown path nor waits for an upstream. Returns OK if the content is ready, else the
// status to answer. May put the request aside until the content is ready.
static GstRTSPStatusCode
check_content (RequestTarget *request)
{
  RtspConnection *connection = request->connection;
  GstRTSPContext *ctx = request->ctx;
  // A request that was put aside uses the content for which it has waited, not another session of a
  // title. Later requests of the client have waited, too.
  Content *content = has_waited (connection, ctx) ? rtsp_connection_dup_content (connection) : NULL;
  GError *error = NULL;
  GstRTSPStatusCode status;

  if (!content && lacks_session (connection, ctx))
    g_set_error_literal (&error, G_IO_ERROR, G_IO_ERROR_BUSY,
        "SETUP: the connection has too many sessions (limits.sessions)");
  else if (!content)
    content = use_target (request, &error);
  if (!content)
    return refuse_content (connection, error);
  status = check_ready (connection, ctx, content);
  if (status == GST_RTSP_STS_OK)
    status = check_own (request, content);
  content_unref (content);
  return status;
}

// ---- the order ----

// Reports whether the request is one of a connection that publishes. access_ask() is not asked
// about it: it was asked about the ANNOUNCE.
static gboolean
is_of_publisher (Requests *self, GstRTSPContext *ctx)
{
  return ctx->method == GST_RTSP_RECORD
         || (self->publishing.publisher
             && (ctx->method == GST_RTSP_SETUP || ctx->method == GST_RTSP_PAUSE
                 || ctx->method == GST_RTSP_TEARDOWN));
}

// gst-rtsp-server answers a request that requires anything with 551.
static gboolean
requires_something (GstRTSPContext *ctx)
{
  const gchar *value;

  for (gint i = 0; (value = request_get_header (ctx, GST_RTSP_HDR_REQUIRE, i)); i++) {
    if (value[strspn (value, " \t,")])
      return TRUE;
  }
  return FALSE;
}

static gboolean
is_about_broadcast (GstRTSPContext *ctx)
{
  return WITH_BROADCAST
         && (ctx->method == GST_RTSP_DESCRIBE
                 ? request_get_header (ctx, GST_RTSP_HDR_SUPPORTED, 0) != NULL
                 : broadcast_requests_asks_for_packets (ctx));
}

// Checks what an admitted request asks for. Each step may put the request aside, so that all are
// done again.
static GstRTSPStatusCode
check_target (Requests *self, RequestTarget *request)
{
  GstRTSPContext *ctx = request->ctx;
  gboolean uses = ctx->method == GST_RTSP_DESCRIBE || ctx->method == GST_RTSP_SETUP;
  gboolean broadcast = is_about_broadcast (ctx);
  GstRTSPStatusCode status = GST_RTSP_STS_OK;

  if (ctx->method == GST_RTSP_SETUP)
    status = setup_guard_check (ctx, self->connection->tls);
  if (status == GST_RTSP_STS_OK && (uses || broadcast) && memory_get_level () != MEMORY_ENOUGH)
    status = allowance_check_memory (self->connection, uses ? ctx->session : NULL);
  if (WITH_BROADCAST && status == GST_RTSP_STS_OK && broadcast)
    status = broadcast_requests_check (&self->broadcast, request);
  if (status == GST_RTSP_STS_OK && uses && !requires_something (ctx))
    status = check_content (request);
  return status;
}

static gchar *
dup_rest (const Demand *demand)
{
  g_autofree gchar *token = demand->token ? g_uri_escape_string (demand->token, NULL, FALSE) : NULL;
  GString *rest = g_string_new (demand->url);

  if (token)
    g_string_append_printf (rest, "%ctoken=%s", strchr (rest->str, '?') ? '&' : '?', token);
  if (demand->moved)
    g_string_append_printf (rest, "%c" ELSEWHERE_MARK, strchr (rest->str, '?') ? '&' : '?');
  return g_string_free (rest, FALSE);
}

static gboolean
has_no_room (RequestTarget *request)
{
  const Resolved *target =
      request->ctx->method == GST_RTSP_DESCRIBE ? request_target_get (request, NULL) : NULL;

  return target
         && allowance_is_full (
             request->connection, request->ctx->session, resolved_get_mount_path (target));
}

// Sends a new reader to another member of the cluster while this one drains, or if it has no room.
// The members that read from this one find another by themselves.
static GstRTSPStatusCode
send_elsewhere (RequestTarget *request)
{
  const Demand *demand = request->demand;
  g_autofree gchar *rest = dup_rest (demand);
  g_autofree gchar *url = NULL;

  if (request->ctx->method == GST_RTSP_DESCRIBE
      && !rtsp_connection_is_of_member (request->connection))
    url = elsewhere_dup_url (request->connection->tls ? ELSEWHERE_RTSPS : ELSEWHERE_RTSP, rest,
        !demand->moved && has_no_room (request));
  if (!url)
    return GST_RTSP_STS_OK;
  answer_begin (request->ctx, GST_RTSP_STS_MOVE_TEMPORARILY);
  gst_rtsp_message_add_header (request->ctx->response, GST_RTSP_HDR_LOCATION, url);
  return answer_send (request->ctx, NULL);
}

// A request for `*` has no URL. This decides which requests need one; what checks and answers those
// takes the URL as an argument.
static GstRTSPStatusCode
check_request (Requests *self, GstRTSPContext *ctx, const gchar *const **challenges)
{
  RequestTarget request;
  GstRTSPStatusCode status;

  rtsp_connection_note_context (self->connection);
  if (!ctx->uri)
    return ctx->method & NEED_URL ? GST_RTSP_STS_BAD_REQUEST : GST_RTSP_STS_OK;
  if (is_of_publisher (self, ctx))
    return publishing_answer (&self->publishing, ctx, ctx->uri);
  request_target_init (&request, self->connection, ctx);
  status = check_access (&request, challenges);
  if (status == GST_RTSP_STS_OK && ctx->method == GST_RTSP_ANNOUNCE)
    status = publishing_announce (&self->publishing, ctx, ctx->uri);
  else if (status == GST_RTSP_STS_OK)
    status = send_elsewhere (&request);
  if (status == GST_RTSP_STS_OK && ctx->method != GST_RTSP_ANNOUNCE)
    status = check_target (self, &request);
  request_target_clear (&request);
  return status;
}

// ---- what gst-rtsp-server asks ----

typedef struct {
  GstRTSPAuth parent;
  Requests *requests;
} RequestAuth;

typedef struct {
  GstRTSPAuthClass parent_class;
} RequestAuthClass;

GType request_auth_get_type (void);
G_DEFINE_TYPE (RequestAuth, request_auth, GST_TYPE_RTSP_AUTH)

static gboolean
session_has_path (GstRTSPContext *ctx)
{
  GstRTSPClient *client = ctx->client;
  g_autofree gchar *path =
      GST_RTSP_CLIENT_GET_CLASS (client)->make_path_from_uri (client, ctx->uri);
  gint matched;

  return gst_rtsp_session_get_media (ctx->session, path, &matched) != NULL;
}

// Reports whether the request is a PLAY for a path that is not part of the session.
// gst-rtsp-server would leak the path of such a request, and a client could send any number of
// them.
static gboolean
is_misplaced (GstRTSPContext *ctx)
{
  return ctx->method == GST_RTSP_PLAY && ctx->session && !session_has_path (ctx);
}

static gboolean
request_auth_check (GstRTSPAuth *auth, GstRTSPContext *ctx, const gchar *check)
{
  const gchar *const *challenges = NULL;
  GstRTSPStatusCode status;

  // Without a GstRTSPAuth the library would assume FALSE here.
  if (g_str_equal (check, GST_RTSP_AUTH_CHECK_TRANSPORT_CLIENT_SETTINGS))
    return FALSE;
  if (!g_str_equal (check, GST_RTSP_AUTH_CHECK_URL))
    return TRUE;
  status = check_request (((RequestAuth *) auth)->requests, ctx, &challenges);
  if (status == GST_RTSP_STS_OK && is_misplaced (ctx))
    status = GST_RTSP_STS_NOT_FOUND;
  if (status != GST_RTSP_STS_OK && status != ANSWERED) {
    answer_begin (ctx, status);
    for (; challenges && *challenges; challenges++)
      gst_rtsp_message_add_header (ctx->response, GST_RTSP_HDR_WWW_AUTHENTICATE, *challenges);
    answer_send (ctx, NULL);
  }
  return status == GST_RTSP_STS_OK;
}

static void
request_auth_init (RequestAuth *self)
{
}

static void
request_auth_class_init (RequestAuthClass *klass)
{
  GST_RTSP_AUTH_CLASS (klass)->check = request_auth_check;
}

void
requests_init (Requests *self, RtspConnection *connection,
    void (*close) (GstRTSPClient *client, const gchar *reason))
{
  RequestAuth *auth = g_object_new (request_auth_get_type (), NULL);

  *self = (Requests) { .connection = connection };
  if (WITH_BROADCAST)
    broadcast_requests_init (&self->broadcast, connection);
  publishing_init (&self->publishing, connection, close);
  auth->requests = self;
  gst_rtsp_client_set_auth (connection->client, GST_RTSP_AUTH (auth));
  g_object_unref (auth);
}

void
requests_clear (Requests *self)
{
  if (WITH_BROADCAST)
    broadcast_requests_clear (&self->broadcast);
}

// ---- why a request was refused ----

// Puts the reason into an answer of status 453.
static void
explain_full (RtspConnection *self, GstRTSPContext *ctx)
{
  g_autofree gchar *why = self->full ? g_strconcat (self->full, "\r\n", NULL) : NULL;

  if (why)
    answer_add_body (ctx, "text/plain", why, strlen (why));
  g_clear_pointer (&self->full, g_free);
}

// Explains a SETUP that gst-rtsp-server refuses with 461 because the stream has no UDP ports.
static void
explain_ports (RtspConnection *self, GstRTSPContext *ctx)
{
  static const gchar why[] = "the server has no free UDP ports; use TCP\r\n";

  if (!ctx->stream || !weir_stream_is_tcp_only (ctx->stream))
    return;
  log_event_limited (
      &refusals, "reader %s refused: SETUP: %.*s", self->peer, (int) strlen (why) - 2, why);
  answer_add_body (ctx, "text/plain", why, strlen (why));
}

void
requests_explain (Requests *self, GstRTSPContext *ctx, GstRTSPStatusCode status)
{
  RtspConnection *connection = self->connection;

  if (ctx->method == GST_RTSP_SETUP && status == GST_RTSP_STS_UNSUPPORTED_TRANSPORT)
    explain_ports (connection, ctx);
  else if (status == GST_RTSP_STS_NOT_ENOUGH_BANDWIDTH)
    explain_full (connection, ctx);
  else if (status == GST_RTSP_STS_SESSION_NOT_FOUND)
    log_event_limited (&refusals,
        "reader %s refused: %s: its header Session names no session of this connection",
        connection->peer, gst_rtsp_method_as_text (ctx->method));
}
