// SPDX-License-Identifier: LGPL-2.1-or-later
// Deferred requests, and the requests that wait behind them.
#include "served.h"

// Requests, and bytes, that a client may send while one of its requests is deferred.
#define BEHIND_MAX 32
#define BEHIND_BYTES_MAX (64 * 1024)

// ---- the guard ----

// gst-rtsp-server asks the client's GstRTSPAuth before it handles a request, and sends nothing by
// itself if the check fails. This GstRTSPAuth refuses requests that must wait, and passes others to
// the program's GstRTSPAuth.
typedef struct {
  GstRTSPAuth parent;
} Guard;

typedef struct {
  GstRTSPAuthClass parent_class;
} GuardClass;

GType weir_guard_get_type (void);
G_DEFINE_TYPE (Guard, weir_guard, GST_TYPE_RTSP_AUTH)

static gboolean
is_guarded (GstRTSPClient *client)
{
  GstRTSPAuth *auth = gst_rtsp_client_get_auth (client);
  gboolean guarded = G_TYPE_CHECK_INSTANCE_TYPE (auth, weir_guard_get_type ());

  g_clear_object (&auth);
  return guarded;
}

// ---- deferring a request ----

void
weir_request_free (gpointer data)
{
  Request *request = data;

  gst_rtsp_message_free (request->message);
  g_free (request);
}

static Request *
request_new (GstRTSPMessage *message)
{
  Request *request = g_new0 (Request, 1);
  GString *headers = g_string_new (NULL);
  guint8 *body;
  guint size = 0;

  gst_rtsp_message_copy (message, &request->message);
  gst_rtsp_message_append_headers (message, headers);
  gst_rtsp_message_get_body (message, &body, &size);
  request->n_bytes = headers->len + size;
  g_string_free (headers, TRUE);
  return request;
}

// Reports whether the current request must wait behind a deferred one.
static gboolean
is_behind (Served *self)
{
  gboolean behind;

  g_mutex_lock (&self->lock);
  behind = !self->again && !self->swallow && !g_queue_is_empty (&self->requests);
  g_mutex_unlock (&self->lock);
  return behind;
}

static void
hold (Served *self, GstRTSPMessage *message, gboolean swallow)
{
  Request *request = request_new (message);
  gboolean fits;

  g_mutex_lock (&self->lock);
  fits =
      self->requests.length <= BEHIND_MAX && self->n_bytes + request->n_bytes <= BEHIND_BYTES_MAX;
  if (fits) {
    g_queue_push_tail (&self->requests, request);
    self->n_bytes += request->n_bytes;
  }
  self->swallow = swallow;
  g_mutex_unlock (&self->lock);
  if (fits)
    return;
  weir_request_free (request);
  g_signal_emit_by_name (self->connection, "close", "too many requests while one is deferred");
  weir_served_close_soon (self);
}

void
weir_requests_hold_refused (Served *self, GstRTSPContext *ctx)
{
  if (ctx->request && ctx->method != GST_RTSP_INVALID && is_behind (self))
    hold (self, ctx->request, TRUE);
}

static Request *
take_request (Served *self)
{
  Request *request = NULL;

  g_mutex_lock (&self->lock);
  if (!self->waits && !self->ended)
    request = g_queue_pop_head (&self->requests);
  if (request)
    self->n_bytes -= request->n_bytes;
  g_mutex_unlock (&self->lock);
  return request;
}

gboolean
weir_client_defer (GstRTSPClient *client, GstRTSPContext *ctx)
{
  Served *self = weir_served_get (client);
  gboolean deferred;
  Request *request;

  if (!self)
    return FALSE;
  // The program may pause the media now, in any thread, before the response.
  weir_transports_unmask (self);
  if (!is_guarded (client))
    return FALSE;
  weir_served_take_over (self);
  request = request_new (ctx->request);
  request->deferred = TRUE;
  g_mutex_lock (&self->lock);
  deferred = self->connection && !self->waits;
  if (deferred) {
    g_queue_push_head (&self->requests, request);
    self->n_bytes += request->n_bytes;
    self->waits = self->swallow = TRUE;
  }
  g_mutex_unlock (&self->lock);
  if (!deferred)
    weir_request_free (request);
  return deferred;
}

gboolean
weir_client_was_deferred (GstRTSPClient *client, GstRTSPContext *ctx)
{
  Served *self = weir_served_get (client);

  return self && self->again && self->again->deferred && ctx->request == self->again->message;
}

gboolean
weir_client_has_deferred (GstRTSPClient *client)
{
  Served *self = weir_served_get (client);
  gboolean has;

  if (!self)
    return FALSE;
  g_mutex_lock (&self->lock);
  has = !g_queue_is_empty (&self->requests);
  g_mutex_unlock (&self->lock);
  return has;
}

static gboolean
handle_again (gpointer weak)
{
  GstRTSPClient *client = g_weak_ref_get (weak);
  Served *self = client ? weir_served_get (client) : NULL;

  if (self) {
    g_mutex_lock (&self->lock);
    self->waits = FALSE;
    g_mutex_unlock (&self->lock);
    while ((self->again = take_request (self))) {
      gst_rtsp_client_handle_message (client, self->again->message);
      g_clear_pointer (&self->again, weir_request_free);
    }
  }
  g_clear_object (&client);
  return G_SOURCE_REMOVE;
}

void
weir_client_resume (GstRTSPClient *client)
{
  Served *self = weir_served_get (client);

  if (self && self->context)
    weir_served_run (self, handle_again, G_PRIORITY_DEFAULT);
}

// gst-rtsp-server would change the transport, and never remove the reader from the sink. If a
// handler of "pre-setup-request" refused, gst-rtsp-server would leak the session.
static gboolean
refuse_setup (GstRTSPContext *ctx)
{
  const GstRTSPStatusCode status = GST_RTSP_STS_METHOD_NOT_VALID_IN_THIS_STATE;

  gst_rtsp_message_init_response (
      ctx->response, status, gst_rtsp_status_as_text (status), ctx->request);
  gst_rtsp_client_send_message (ctx->client, ctx->session, ctx->response);
  return FALSE;
}

static gboolean
guard_check (GstRTSPAuth *auth, GstRTSPContext *ctx, const gchar *check)
{
  Served *self = weir_served_get (ctx->client);

  gboolean is_url = g_str_equal (check, GST_RTSP_AUTH_CHECK_URL), good;

  if (is_url && is_behind (self)) {
    hold (self, ctx->request, FALSE);
    return FALSE;
  }
  // Without a GstRTSPAuth, the result of gst-rtsp-server.
  good = self->auth ? GST_RTSP_AUTH_GET_CLASS (self->auth)->check (self->auth, ctx, check)
                    : !g_str_equal (check, GST_RTSP_AUTH_CHECK_TRANSPORT_CLIENT_SETTINGS);
  if (good && is_url && ctx->method == GST_RTSP_SETUP && ctx->session && ctx->uri
      && weir_transports_plays (self, ctx))
    return refuse_setup (ctx);
  return good;
}

static void
weir_guard_init (Guard *self)
{
}

static void
weir_guard_class_init (GuardClass *klass)
{
  GST_RTSP_AUTH_CLASS (klass)->check = guard_check;
}

void
weir_requests_guard (Served *self)
{
  GstRTSPAuth *ours = g_object_new (weir_guard_get_type (), NULL);

  self->auth = gst_rtsp_client_get_auth (self->client);
  gst_rtsp_client_set_auth (self->client, ours);
  g_object_unref (ours);
}

gboolean
weir_requests_is_put_aside (Served *self)
{
  gboolean aside;

  g_mutex_lock (&self->lock);
  aside = self->swallow;
  g_mutex_unlock (&self->lock);
  return aside;
}

gboolean
weir_requests_swallow (Served *self, const GstRTSPMessage *messages, guint n)
{
  gboolean swallowed;

  g_mutex_lock (&self->lock);
  swallowed = self->swallow && n == 1 && messages[0].type == GST_RTSP_MESSAGE_RESPONSE;
  if (swallowed)
    self->swallow = FALSE;
  g_mutex_unlock (&self->lock);
  return swallowed;
}
