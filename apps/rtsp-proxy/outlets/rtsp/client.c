// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/client.h"

#include "base/log.h"
#include "config/limits.h"
#include "mounts/titles.h"
#include "outlets/rtsp/allowance.h"
#include "outlets/rtsp/answer.h"
#include "outlets/rtsp/media.h"
#include "outlets/rtsp/packet_feedback.h"
#include "outlets/rtsp/peer.h"
#include "outlets/rtsp/requests.h"
#include "outlets/rtsp/rtsp_reader.h"
#include "outlets/rtsp/serving.h"
#include "outlets/rtsp/session_pool.h"
#include "outlets/rtsp/setup_guard.h"
#include "outlets/rtsp/silence.h"
#include "outlets/rtsp/srtp.h"
#include "outlets/rtsp/title_media.h"
#include "outlets/rtsp/tls_answer.h"
#include "readers/adaptation.h"
#include "readers/totals.h"
#include "weir-rtsp.h"

#include <string.h>

typedef struct {
  GstRTSPClient parent;
  GstRTSPSessionPool *pool; // its own, so that no client can use the session of another
  RtspConnection connection;
  Requests requests;

  GMutex lock;         // protects the fields below
  gchar *session;      // id of the session that plays, or NULL
  Reader *reader;      // of that session, or NULL
  gchar *leave_reason; // why the proxy closes the connection, or NULL
} Client;

typedef struct {
  GstRTSPClientClass parent_class;
} ClientClass;

GType client_get_type (void);
G_DEFINE_TYPE (Client, client, GST_TYPE_RTSP_CLIENT)

// ---- paths ----

static gchar *
client_make_path_from_uri (GstRTSPClient *client, const GstRTSPUrl *url)
{
  return rtsp_connection_make_path (&((Client *) client)->connection, url);
}

typedef struct {
  GstRTSPMountPoints parent;
} Points;

typedef struct {
  GstRTSPMountPointsClass parent_class;
} PointsClass;

GType points_get_type (void);
G_DEFINE_TYPE (Points, points, GST_TYPE_RTSP_MOUNT_POINTS)

// gst-rtsp-server calls this for a DESCRIBE, and the client's class for all other requests. Only
// the client knows which content it uses.
static gchar *
points_make_path (GstRTSPMountPoints *points, const GstRTSPUrl *url)
{
  return client_make_path_from_uri (gst_rtsp_context_get_current ()->client, url);
}

static void
points_init (Points *self)
{
}

static void
points_class_init (PointsClass *klass)
{
  GST_RTSP_MOUNT_POINTS_CLASS (klass)->make_path = points_make_path;
}

GstRTSPMountPoints *
client_points_new (void)
{
  return g_object_new (points_get_type (), NULL);
}

// ---- PLAY and PAUSE ----

static Reader *
dup_reader (Client *self)
{
  Reader *reader;

  g_mutex_lock (&self->lock);
  reader = self->reader ? reader_ref (self->reader) : NULL;
  g_mutex_unlock (&self->lock);
  return reader;
}

typedef struct {
  RtspRequest request;
  const Serving *serving;
} Call;

static void
call_clear (Call *call)
{
  g_clear_pointer (&call->request.content, content_unref);
  g_clear_pointer (&call->request.reader, reader_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Call, call_clear)

// Collects the arguments for the functions of a Serving.
static Call
make_call (GstRTSPClient *client, GstRTSPContext *ctx, GstRTSPMedia *media)
{
  RtspConnection *connection = &((Client *) client)->connection;
  gboolean live = media && !title_media_is (media);

  return (Call) {
    { ctx, rtsp_connection_dup_content (connection), dup_reader ((Client *) client),
        connection->peer, connection->layers, connection->delay_ns, connection->mounts },
    !live                   ? &serving_stored
    : media_get_own (media) ? &serving_session
                            : &serving_live,
  };
}

static GstRTSPStatusCode
on_pre_pause (GstRTSPClient *client, GstRTSPContext *ctx, gpointer unused)
{
  g_auto (Call) call = make_call (client, ctx, gst_rtsp_session_media_get_media (ctx->sessmedia));

  return call.serving->begin_pause (&call.request);
}

static void
on_pause (GstRTSPClient *client, GstRTSPContext *ctx, gpointer unused)
{
  g_auto (Call) call = make_call (client, ctx, gst_rtsp_session_media_get_media (ctx->sessmedia));

  if (call.serving->end_pause)
    call.serving->end_pause (&call.request);
}

static GstRTSPStatusCode
on_pre_play (GstRTSPClient *client, GstRTSPContext *ctx, gpointer unused)
{
  g_auto (Call) call = make_call (client, ctx, gst_rtsp_session_media_get_media (ctx->sessmedia));

  // With this header gst-rtsp-server would write into a response that it has not made yet.
  gst_rtsp_message_remove_header (ctx->request, GST_RTSP_HDR_SEEK_STYLE, -1);
  return call.serving->begin_play ? call.serving->begin_play (&call.request) : GST_RTSP_STS_OK;
}

static GstSDPMessage *
client_create_sdp (GstRTSPClient *client, GstRTSPMedia *media)
{
  GstSDPMessage *sdp = GST_RTSP_CLIENT_CLASS (client_parent_class)->create_sdp (client, media);
  g_auto (Call) call = make_call (client, NULL, media);

  if (sdp && call.serving->describe)
    call.serving->describe (&call.request, media, sdp);
  if (sdp && call.serving == &serving_live && ((Client *) client)->connection.feedback)
    packet_feedback_describe (media, sdp);
  if (sdp && ((Client *) client)->connection.tls)
    srtp_describe (client, media, sdp);
  return sdp;
}

static GstRTSPStatusCode
client_adjust_play_mode (GstRTSPClient *client, GstRTSPContext *ctx, GstRTSPTimeRange **range,
    GstSeekFlags *flags, gdouble *rate, GstClockTime *trickmode_interval,
    gboolean *enable_rate_control)
{
  g_auto (Call) call = make_call (client, ctx, ctx->media);

  return call.serving->adjust_play (&call.request, range, flags, rate);
}

// Resumes the reader after a PLAY that should seek was refused, because the reader still plays.
static void
on_play_refused (GstRTSPClient *client, GstRTSPSessionMedia *media)
{
  g_autoptr (Reader) reader = dup_reader ((Client *) client);

  if (reader && gst_rtsp_session_media_get_rtsp_state (media) == GST_RTSP_STATE_PLAYING)
    reader_resume (reader);
}

// Completes the answer to a SETUP that succeeded.
static void
answer_setup (Client *self, GstRTSPContext *ctx, GstRTSPMessage *answer)
{
  g_auto (Call) call = make_call (GST_RTSP_CLIENT (self), ctx, ctx->media);

  srtp_answer (ctx, answer);
  if (call.serving == &serving_live && self->connection.feedback)
    packet_feedback_begin (ctx);
}

static void
on_send_message (GstRTSPClient *client, GstRTSPContext *ctx, GstRTSPMessage *message)
{
  Client *self = (Client *) client;
  GstRTSPStatusCode code = GST_RTSP_STS_INVALID;

  __atomic_store_n (&self->connection.answered, g_get_monotonic_time (), __ATOMIC_RELAXED);
  answer_complete (message);
  if (gst_rtsp_message_get_type (message) != GST_RTSP_MESSAGE_RESPONSE
      || gst_rtsp_message_parse_response (message, &code, NULL, NULL) != GST_RTSP_OK)
    return;
  if (ctx->method == GST_RTSP_PLAY && ctx->sessmedia && code != GST_RTSP_STS_OK)
    on_play_refused (client, ctx->sessmedia);
  else if (ctx->method == GST_RTSP_SETUP && ctx->trans && code == GST_RTSP_STS_OK)
    answer_setup (self, ctx, message);
  else if (code >= GST_RTSP_STS_BAD_REQUEST)
    requests_explain (&self->requests, ctx, code);
}

static GstRTSPStatusCode
client_adjust_play_response (GstRTSPClient *client, GstRTSPContext *ctx)
{
  g_auto (Call) call = make_call (client, ctx, ctx->media);

  if (call.serving->answer_play)
    call.serving->answer_play (&call.request);
  return GST_RTSP_STS_OK;
}

static void
close_client (GstRTSPClient *client, const gchar *reason)
{
  client_close (client, NULL, reason);
}

static void
forget_reader (Reader *reader)
{
  readers_remove (reader);
  adaptation_forget (reader);
}

static void
adapt (const RtspConnection *connection, Presentation *presentation, Reader *reader)
{
  g_autoptr (Mount) varies = rtsp_connection_dup_varying (connection, presentation);

  adaptation_watch (reader, presentation, varies, connection->layers);
}

// Makes and registers the reader of a session. Call without the lock held, because this asks the
// sinks.
static Reader *
make_reader (Client *self, GstRTSPSessionMedia *media)
{
  g_autoptr (Content) content = rtsp_connection_dup_content (&self->connection);
  Reader *reader = rtsp_reader_new (media, content ? content->presentation : NULL,
      content ? content_get_mount_path (content) : "?", self->connection.peer,
      GST_RTSP_CLIENT (self), close_client);

  log_event ("reader %s in: %s over %s%s", self->connection.peer, content_get_label (content),
      reader_get_transport (reader), weir_session_media_has_srtp (media) ? " with SRTP" : "");
  readers_add (reader);
  if (content && content->presentation)
    adapt (&self->connection, content->presentation, reader);
  return reader;
}

// gst-rtsp-server has answered and plays.
static void
end_play (GstRTSPClient *client, GstRTSPContext *ctx)
{
  g_auto (Call) call = make_call (client, ctx, gst_rtsp_session_media_get_media (ctx->sessmedia));

  if (call.serving->end_play)
    call.serving->end_play (&call.request);
}

static void
on_play (GstRTSPClient *client, GstRTSPContext *ctx, gpointer unused)
{
  Client *self = (Client *) client;
  Reader *reader;
  gboolean first;

  end_play (client, ctx);
  silence_watch (client, ctx, close_client);
  titles_note_playing (G_OBJECT (gst_rtsp_session_media_get_media (ctx->sessmedia)));
  g_mutex_lock (&self->lock);
  first = !self->session;
  if (first)
    self->session = g_strdup (gst_rtsp_session_get_sessionid (ctx->session));
  reader = self->reader ? reader_ref (self->reader) : NULL;
  g_mutex_unlock (&self->lock);
  if (reader)
    reader_resume (reader);
  g_clear_pointer (&reader, reader_unref);
  if (!first)
    return;
  reader = make_reader (self, ctx->sessmedia);
  g_mutex_lock (&self->lock);
  if (self->session) // the session has not timed out meanwhile
    self->reader = g_steal_pointer (&reader);
  g_mutex_unlock (&self->lock);
  if (reader) {
    forget_reader (reader);
    reader_unref (reader);
  }
}

// ---- leaving ----

static void
remove_reader (Reader *reader)
{
  ReaderSample last;

  forget_reader (reader);
  reader_sample_reports (reader, &last);
  totals_reader_left (reader_get_mount (reader), last.lost, last.reports);
  reader_unref (reader);
}

// Ends what the client plays or publishes, and logs the reason.
static void
end_session (Client *self, const gchar *reason)
{
  Reader *reader = NULL;
  g_autoptr (Content) content = NULL;
  gboolean plays;
  g_autofree gchar *why = NULL;

  g_mutex_lock (&self->lock);
  plays = self->session != NULL;
  why = g_strdup (self->leave_reason ? self->leave_reason : reason);
  if (plays) {
    g_clear_pointer (&self->session, g_free);
    g_clear_pointer (&self->leave_reason, g_free);
    reader = g_steal_pointer (&self->reader);
  }
  g_mutex_unlock (&self->lock);
  publishing_end (&self->requests.publishing, why);
  if (reader)
    remove_reader (reader);
  if (plays) {
    content = rtsp_connection_dup_content (&self->connection);
    log_event ("reader %s out: %s: %s", self->connection.peer, content_get_label (content), why);
  }
}

void
client_set_leave_reason (GstRTSPClient *client, const gchar *reason)
{
  Client *self = (Client *) client;

  g_mutex_lock (&self->lock);
  if (!self->leave_reason)
    self->leave_reason = g_strdup (reason);
  g_mutex_unlock (&self->lock);
}

static void
on_teardown (GstRTSPClient *client, GstRTSPContext *ctx, gpointer unused)
{
  Client *self = (Client *) client;
  g_autoptr (Content) content = rtsp_connection_dup_content (&self->connection);

  end_session (self, "TEARDOWN");
  if (content && content->title)
    rtsp_connection_use (&self->connection, NULL);
}

static void
end_with_connection (Client *self)
{
  g_autofree gchar *reason = weir_client_get_close_reason (GST_RTSP_CLIENT (self));

  end_session (self, reason ? reason : "connection closed");
}

static GPrivate cleaning_up;

static gboolean
clean_up_here (gpointer data)
{
  Client *self = data;

  g_private_set (&cleaning_up, self);
  gst_rtsp_session_pool_cleanup (self->pool);
  g_private_set (&cleaning_up, NULL);
  return G_SOURCE_REMOVE;
}

gint
client_cleanup_sessions (GstRTSPClient *client, gint64 now)
{
  Client *self = (Client *) client;
  gint left_ms = session_pool_get_left (self->pool, now);
  g_autoptr (GMainContext) context = NULL;

  if (left_ms > 0)
    return left_ms;
  context = rtsp_connection_dup_context (&self->connection);
  // In the client's thread, because gst-rtsp-server does not expect that a session ends while it
  // handles a request for it.
  if (context)
    g_main_context_invoke_full (
        context, G_PRIORITY_DEFAULT, clean_up_here, g_object_ref (self), g_object_unref);
  return left_ms;
}

static void
on_session_removed (GstRTSPSessionPool *pool, GstRTSPSession *session, Client *self)
{
  gboolean ours;

  g_mutex_lock (&self->lock);
  ours = self->session && g_str_equal (self->session, gst_rtsp_session_get_sessionid (session));
  g_mutex_unlock (&self->lock);
  if (ours && g_private_get (&cleaning_up))
    end_session (self, "session timed out");
  else if (ours)
    end_with_connection (self);
}

static gboolean
close_here (gpointer data)
{
  gst_rtsp_client_close (data);
  return G_SOURCE_REMOVE;
}

// Reports whether the content is the presentation, or a title of the mount with the presentation's
// path.
static gboolean
belongs_to (Content *content, Presentation *presentation)
{
  return content
         && (content->presentation == presentation
             || (content->title
                 && g_str_equal (
                     content_get_mount_path (content), presentation_get_path (presentation))));
}

void
client_close (GstRTSPClient *client, Presentation *presentation, const gchar *reason)
{
  Client *self = (Client *) client;
  Content *content = rtsp_connection_dup_content (&self->connection);
  gboolean ours = !presentation || belongs_to (content, presentation);
  GMainContext *context;

  g_clear_pointer (&content, content_unref);
  if (!ours)
    return;
  context = rtsp_connection_dup_context (&self->connection);
  client_set_leave_reason (client, reason);
  if (!context) { // there was no request yet
    gst_rtsp_client_close (client);
    return;
  }
  g_main_context_invoke_full (
      context, G_PRIORITY_DEFAULT, close_here, g_object_ref (self), g_object_unref);
  g_main_context_unref (context);
}

// ---- construction ----

void
client_connected (GstRTSPClient *client)
{
  GstRTSPConnection *connection = gst_rtsp_client_get_connection (client);
  RtspConnection *self = &((Client *) client)->connection;
  g_autofree gchar *ip = peer_dup_address (client);

  self->peer = peer_dup_name (client);
  self->tls = tls_answer_is_needed (client);
  self->visitor = access_peer_new (ip ? ip : "", self->tls ? "rtsps" : "rtsp");
  // No HTTP tunnels, because gst-rtsp-server joins two connections by a cookie that any client may
  // choose.
  gst_rtsp_connection_set_http_mode (connection, TRUE);
  tls_answer_begin (client);
}

const gchar *
client_get_peer (GstRTSPClient *client)
{
  return ((Client *) client)->connection.peer;
}

gint64
client_get_answered (GstRTSPClient *client)
{
  return __atomic_load_n (&((Client *) client)->connection.answered, __ATOMIC_RELAXED);
}

GstRTSPClient *
client_new (GstRTSPServer *server, Mounts *all, Access *access)
{
  GstRTSPClient *client = g_object_new (client_get_type (), NULL);
  Client *self = (Client *) client;
  GstRTSPMountPoints *mounts = gst_rtsp_server_get_mount_points (server);
  GstRTSPThreadPool *threads = gst_rtsp_server_get_thread_pool (server);
  Limits limits;

  limits_get (&limits);
  rtsp_connection_init (&self->connection, client, all, access);
  requests_init (&self->requests, &self->connection, close_client);
  self->pool = session_pool_new ();
  gst_rtsp_session_pool_set_max_sessions (self->pool, limits.sessions);
  gst_rtsp_client_set_session_pool (client, self->pool);
  gst_rtsp_client_set_mount_points (client, mounts);
  gst_rtsp_client_set_thread_pool (client, threads);
  gst_rtsp_client_set_content_length_limit (client, limits.request.body);
  g_object_unref (mounts);
  g_object_unref (threads);

  allowance_watch (client, &self->connection);
  g_signal_connect (client, "send-message", G_CALLBACK (on_send_message), NULL);
  g_signal_connect (client, "pre-pause-request", G_CALLBACK (on_pre_pause), NULL);
  g_signal_connect (client, "pause-request", G_CALLBACK (on_pause), NULL);
  g_signal_connect_swapped (
      client, "describe-request", G_CALLBACK (rtsp_connection_hand_over), &self->connection);
  g_signal_connect_swapped (
      client, "setup-request", G_CALLBACK (rtsp_connection_hand_over), &self->connection);
  g_signal_connect (client, "pre-play-request", G_CALLBACK (on_pre_play), NULL);
  g_signal_connect (client, "play-request", G_CALLBACK (on_play), NULL);
  g_signal_connect (client, "teardown-request", G_CALLBACK (on_teardown), NULL);
  g_signal_connect (client, "closed", G_CALLBACK (end_with_connection), NULL);
  setup_guard_watch (client);
  g_signal_connect_object (
      self->pool, "session-removed", G_CALLBACK (on_session_removed), client, 0);
  return client;
}

static void
client_init (Client *self)
{
  g_mutex_init (&self->lock);
}

static void
client_finalize (GObject *object)
{
  Client *self = (Client *) object;

  end_session (self, "connection closed");
  g_clear_object (&self->pool);
  g_free (self->leave_reason);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (client_parent_class)->finalize (object);
  requests_clear (&self->requests);
  // Last, because the parent class still uses the media.
  rtsp_connection_clear (&self->connection);
}

static gboolean
client_configure_client_transport (
    GstRTSPClient *client, GstRTSPContext *ctx, GstRTSPTransport *transport)
{
  const gchar *host = gst_rtsp_connection_get_url (gst_rtsp_client_get_connection (client))->host;
  gboolean udp = transport->lower_transport == GST_RTSP_LOWER_TRANS_UDP;

  if (!setup_guard_allows (ctx, transport, host))
    return FALSE;
  // A live media has opened its sockets. gst-rtsp-server would also open those for IPv6.
  if (!udp || !G_TYPE_CHECK_INSTANCE_TYPE (ctx->media, WEIR_TYPE_RELAY_MEDIA))
    return GST_RTSP_CLIENT_CLASS (client_parent_class)
        ->configure_client_transport (client, ctx, transport);
  g_free (transport->destination);
  transport->destination = g_strdup (host);
  return TRUE;
}

static void
client_class_init (ClientClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = client_finalize;
  GST_RTSP_CLIENT_CLASS (klass)->make_path_from_uri = client_make_path_from_uri;
  GST_RTSP_CLIENT_CLASS (klass)->create_sdp = client_create_sdp;
  GST_RTSP_CLIENT_CLASS (klass)->configure_client_transport = client_configure_client_transport;
  GST_RTSP_CLIENT_CLASS (klass)->adjust_play_mode = client_adjust_play_mode;
  GST_RTSP_CLIENT_CLASS (klass)->adjust_play_response = client_adjust_play_response;
  tls_answer_class_init (GST_RTSP_CLIENT_CLASS (klass));
  answer_class_init (GST_RTSP_CLIENT_CLASS (klass));
}
