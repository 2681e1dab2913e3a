// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Serves RTSP readers over TCP with fanoutsink, without a change to gst-rtsp-server.
//
// The transport of a TCP reader is made to look like UDP: its destination is the token of the
// reader's connection, its ports are the interleaved channels. So gst-rtsp-server creates no TCP
// sink, and adds the reader to the same fanoutsink that serves the UDP readers, which finds the
// connection by the token.
//
// Responses must be sent by the same writer as the media. Weir's writer replaces gst-rtsp-server's
// own at the first message: gst_rtsp_client_attach() has then set the latter, which has not written
// anything yet.
//
// No packet of a session leaves before the response to its PLAY, because many players drop such
// packets. gst-rtsp-server adds the readers to the sinks before that; see
// weir_transports_on_pre_play().
//
// A TCP reader lives as long as its connection, because many players send nothing while they play.
// Its session does not expire while it plays, and the kernel closes a connection that makes no
// progress.

#include "served.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "reports.h"
#include "rtpinfo.h"
#include "text.h"

#define GIVE_UP_S 60 // seconds without acknowledgement until the kernel closes a connection

static GQuark
served_quark (void)
{
  return g_quark_from_static_string ("weir-served");
}

Served *
weir_served_get (GstRTSPClient *client)
{
  return g_object_get_qdata (G_OBJECT (client), served_quark ());
}

void
weir_served_free_weak (gpointer weak)
{
  g_weak_ref_clear (weak);
  g_free (weak);
}

// ---- writing ----

typedef struct {
  GWeakRef client; // a strong reference would leak if the thread has ended
  guint8 channel;
} DataSent;

static gboolean
tell_data_sent (gpointer data)
{
  DataSent *sent = data;
  GstRTSPClient *client = g_weak_ref_get (&sent->client);
  GstRTSPStreamTransport *transport =
      client ? gst_rtsp_client_get_stream_transport (client, sent->channel) : NULL;

  if (transport)
    gst_rtsp_stream_transport_message_sent (transport);
  g_clear_object (&client);
  return G_SOURCE_REMOVE;
}

static void
free_data_sent (gpointer sent)
{
  g_weak_ref_clear (&((DataSent *) sent)->client);
  g_free (sent);
}

// Reports a data message of gst-rtsp-server (RTCP to a client that records) as sent.
// gst-rtsp-server waits for the report, but holds a lock during this call, so the report comes from
// an idle source.
static void
note_data (Served *self, GstRTSPMessage *message)
{
  GSource *source = g_idle_source_new ();
  DataSent *sent = g_new0 (DataSent, 1);

  g_weak_ref_init (&sent->client, self->client);
  gst_rtsp_message_parse_data (message, &sent->channel);
  g_source_set_priority (source, G_PRIORITY_DEFAULT);
  g_source_set_callback (source, tell_data_sent, sent, free_data_sent);
  g_source_attach (source, self->context);
  g_source_unref (source);
}

void
weir_served_run (Served *self, GSourceFunc func, gint priority)
{
  GSource *source = g_idle_source_new ();
  GWeakRef *weak = g_new (GWeakRef, 1);

  g_weak_ref_init (weak, self->client);
  g_source_set_priority (source, priority);
  g_source_set_callback (source, func, weak, weir_served_free_weak);
  g_source_attach (source, self->context);
  g_source_unref (source);
}

static gboolean
close_client (gpointer weak)
{
  GstRTSPClient *client = g_weak_ref_get (weak);

  if (client) {
    gst_rtsp_client_close (client);
    g_object_unref (client);
  }
  return G_SOURCE_REMOVE;
}

void
weir_served_close_soon (Served *self)
{
  if (g_atomic_int_compare_and_exchange (&self->closing, FALSE, TRUE))
    weir_served_run (self, close_client, G_PRIORITY_HIGH);
}

// Writes messages in place of gst-rtsp-server, which passes the data of another function as the
// last argument.
static gboolean
send_messages (
    GstRTSPClient *client, GstRTSPMessage *messages, guint n, gboolean close, gpointer unused)
{
  Served *self = weir_served_get (client);
  GByteArray *out;
  gboolean ok = TRUE;
  GBytes *bytes;

  if (weir_requests_swallow (self, messages, n))
    return TRUE;
  out = g_byte_array_new ();
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < n; i++)
    ok &= weir_rtsp_text (&messages[i], &self->cseq, out);
  g_mutex_unlock (&self->lock);
  bytes = g_byte_array_free_to_bytes (out);
  if (ok)
    g_signal_emit_by_name (self->connection, "send", bytes, &ok);
  g_bytes_unref (bytes);
  if (ok && n > 0 && gst_rtsp_message_get_type (&messages[0]) == GST_RTSP_MESSAGE_DATA)
    note_data (self, &messages[0]);
  if (!ok)
    weir_served_close_soon (self);
  return ok;
}

// ---- closing ----

// Called when gst-rtsp-server has closed the connection or found its end, also after Weir closed
// it.
static void
on_closed (gpointer data)
{
  Served *self = data;
  gchar *reason;

  g_object_get (self->connection, "close-reason", &reason, NULL);
  g_mutex_lock (&self->lock);
  self->close_reason = reason;
  self->ended = TRUE;
  g_mutex_unlock (&self->lock);
  g_signal_emit_by_name (self->connection, "close", "the RTSP connection has ended");
  weir_transports_let_expire (self, NULL);
}

gchar *
weir_client_get_close_reason (GstRTSPClient *client)
{
  Served *self = weir_served_get (client);
  gchar *reason;

  if (!self)
    return NULL;
  g_mutex_lock (&self->lock);
  reason = g_strdup (self->close_reason);
  g_mutex_unlock (&self->lock);
  return reason;
}

guint64
weir_client_get_waiting (GstRTSPClient *client)
{
  Served *self = weir_served_get (client);
  guint64 waiting = 0;

  if (self && g_atomic_int_get (&self->written))
    g_object_get (self->connection, "waiting", &waiting, NULL);
  return waiting;
}

gboolean
weir_client_read_line (GstRTSPClient *client, guint64 now, gpointer view)
{
  Served *self = weir_served_get (client);
  gboolean known = FALSE;

  if (self && g_atomic_int_get (&self->written))
    g_signal_emit_by_name (self->connection, "read-estimate", view, now, &known);
  return known;
}

gboolean
weir_client_send_frame (GstRTSPClient *client, guint8 channel, gconstpointer data, gsize len)
{
  Served *self = weir_served_get (client);
  guint8 head[] = { '$', channel, (guint8) (len >> 8), (guint8) len };
  gboolean ok = FALSE;
  GByteArray *frame;
  GBytes *bytes;

  g_return_val_if_fail (len <= G_MAXUINT16, FALSE);
  if (!self || !g_atomic_int_get (&self->written))
    return FALSE;
  frame = g_byte_array_append (g_byte_array_new (), head, sizeof head);
  bytes = g_byte_array_free_to_bytes (g_byte_array_append (frame, data, (guint) len));
  g_signal_emit_by_name (self->connection, "send", bytes, &ok);
  g_bytes_unref (bytes);
  return ok;
}

// ---- connecting ----

static void
set_give_up_time (GSocket *socket)
{
  g_socket_set_option (socket, IPPROTO_TCP, TCP_USER_TIMEOUT, GIVE_UP_S * 1000, NULL);
  // TCP_USER_TIMEOUT needs unacknowledged data; keepalive covers the time without any.
  g_socket_set_keepalive (socket, TRUE);
  g_socket_set_option (socket, IPPROTO_TCP, TCP_KEEPIDLE, GIVE_UP_S / 2, NULL);
  g_socket_set_option (socket, IPPROTO_TCP, TCP_KEEPINTVL, GIVE_UP_S / 6, NULL);
}

void
weir_served_take_over (Served *self)
{
  GstRTSPConnection *rtsp = gst_rtsp_client_get_connection (self->client);
  GSource *source = g_main_current_source ();
  GSocket *socket;

  // A message from another thread is not a response: wait for one from the client's thread.
  if (!source || self->stock || !rtsp || gst_rtsp_connection_is_tunneled (rtsp)
      || !g_atomic_int_compare_and_exchange (&self->taken, FALSE, TRUE))
    return;
  socket = gst_rtsp_connection_get_write_socket (rtsp);
  set_give_up_time (socket);
  self->context = g_main_context_ref (g_source_get_context (source));
  self->connection = g_object_new (g_type_from_name ("WeirConnection"), "socket", socket, NULL);
  g_object_get (self->connection, "token", &self->token, NULL);
  g_atomic_int_set (&self->written, TRUE);
  gst_rtsp_client_set_send_messages_func (self->client, send_messages, self, on_closed);
}

// Called before every message, without a lock of gst-rtsp-server.
static void
on_send_message (GstRTSPClient *client, GstRTSPContext *ctx, GstRTSPMessage *message, Served *self)
{
  GstRTSPStatusCode code = GST_RTSP_STS_INVALID;

  weir_served_take_over (self);
  if (gst_rtsp_message_get_type (message) == GST_RTSP_MESSAGE_RESPONSE) {
    weir_transports_let_name (self);
    gst_rtsp_message_parse_response (message, &code, NULL, NULL);
    weir_requests_hold_refused (self, ctx);
  }
  if (code >= GST_RTSP_STS_BAD_REQUEST && ctx->method == GST_RTSP_PLAY && ctx->sessmedia
      && !weir_requests_is_put_aside (self))
    weir_transports_play_on (ctx->sessmedia);
  if (code != GST_RTSP_STS_OK)
    return;
  // A player may send its first RTCP as soon as it has the response.
  if (ctx->method == GST_RTSP_SETUP && ctx->trans)
    weir_reports_watch (ctx);
  else if (ctx->method == GST_RTSP_PLAY && ctx->sessmedia)
    weir_rtp_info_rewrite (ctx->sessmedia, message);
  else if (ctx->method == GST_RTSP_TEARDOWN)
    weir_transports_restore_leaving (self);
}

static void
free_served (gpointer data)
{
  Served *self = data;

  g_clear_object (&self->connection);
  g_clear_pointer (&self->context, g_main_context_unref);
  g_clear_pointer (&self->leaving, g_ptr_array_unref);
  g_ptr_array_unref (self->kept);
  g_ptr_array_unref (self->unnamed);
  g_ptr_array_unref (self->masked);
  g_queue_clear_full (&self->requests, weir_request_free);
  g_clear_object (&self->auth);
  g_free (self->close_reason);
  g_free (self->token);
  g_mutex_clear (&self->lock);
  g_free (self);
}

// Reports whether the server has a TLS certificate; then every connection uses TLS.
static gboolean
speaks_tls (GstRTSPClient *client)
{
  GstRTSPAuth *auth = gst_rtsp_client_get_auth (client);
  GTlsCertificate *certificate = auth ? gst_rtsp_auth_get_tls_certificate (auth) : NULL;
  gboolean tls = certificate != NULL;

  g_clear_object (&certificate);
  g_clear_object (&auth);
  return tls;
}

static void
on_client_connected (GstRTSPServer *server, GstRTSPClient *client, gpointer unused)
{
  Served *self = g_new0 (Served, 1);

  self->client = client;
  self->stock = speaks_tls (client);
  self->kept = g_ptr_array_new_with_free_func (weir_served_free_weak);
  self->unnamed = g_ptr_array_new_with_free_func (g_object_unref);
  self->masked = g_ptr_array_new_with_free_func (g_object_unref);
  g_mutex_init (&self->lock);
  g_object_set_qdata_full (G_OBJECT (client), served_quark (), self, free_served);
  if (!self->stock)
    weir_requests_guard (self);
  g_signal_connect (client, "send-message", G_CALLBACK (on_send_message), self);
  g_signal_connect (client, "pre-setup-request", G_CALLBACK (weir_transports_on_pre_setup), self);
  g_signal_connect (client, "setup-request", G_CALLBACK (weir_transports_on_setup), self);
  // After the program's handlers, which may refuse or defer the PLAY.
  g_signal_connect_after (
      client, "pre-play-request", G_CALLBACK (weir_transports_on_pre_play), self);
  g_signal_connect (client, "play-request", G_CALLBACK (weir_transports_on_play), self);
  g_signal_connect (client, "pause-request", G_CALLBACK (weir_transports_on_pause), self);
  g_signal_connect (client, "teardown-request", G_CALLBACK (weir_transports_on_teardown), self);
}

gboolean
weir_serve (GstRTSPServer *server, GError **error)
{
  if (!weir_use_fanoutsink (error))
    return FALSE;
  g_signal_connect (server, "client-connected", G_CALLBACK (on_client_connected), NULL);
  return TRUE;
}
