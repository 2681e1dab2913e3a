// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/tls_answer.h"

#include "outlets/rtsp/setup_guard.h"
#include "outlets/rtsp/srtp.h"
#include "tls/tls_front.h"

static GSocket *
get_socket (GstRTSPClient *client)
{
  GstRTSPConnection *connection = gst_rtsp_client_get_connection (client);

  return connection ? gst_rtsp_connection_get_read_socket (connection) : NULL;
}

gboolean
tls_answer_is_needed (GstRTSPClient *client)
{
  GSocket *socket = get_socket (client);

  return socket && tls_front_get_peer (socket);
}

// ---- responses ----

// Makes the URLs of a response say rtsps://. Called when Weir has completed the response.
static void
on_message (GstRTSPClient *client, GstRTSPContext *ctx, GstRTSPMessage *message)
{
  static const GstRTSPHeaderField fields[] = { GST_RTSP_HDR_CONTENT_BASE, GST_RTSP_HDR_RTP_INFO };

  if (gst_rtsp_message_get_type (message) != GST_RTSP_MESSAGE_RESPONSE)
    return;
  for (guint i = 0; i < G_N_ELEMENTS (fields); i++) {
    GString *text;
    gchar *value;

    if (gst_rtsp_message_get_header (message, fields[i], &value, 0) != GST_RTSP_OK)
      continue;
    text = g_string_new (value);
    g_string_replace (text, "rtsp://", "rtsps://", 0);
    gst_rtsp_message_remove_header (message, fields[i], -1);
    gst_rtsp_message_take_header (message, fields[i], g_string_free (text, FALSE));
  }
}

void
tls_answer_begin (GstRTSPClient *client)
{
  if (!tls_answer_is_needed (client))
    return;
  tls_front_switch (get_socket (client));
  g_signal_connect_after (client, "send-message", G_CALLBACK (on_message), NULL);
}

// ---- transports ----

static gboolean (*configure_plain) (GstRTSPClient *, GstRTSPContext *, GstRTSPTransport *);

static gboolean
is_used (GstRTSPClient *client, gint channel)
{
  return gst_rtsp_client_get_stream_transport (client, (guint8) channel) != NULL;
}

// Does what gst-rtsp-server does, but does not ask the socket for its ports.
static gboolean
configure (GstRTSPClient *client, GstRTSPContext *ctx, GstRTSPTransport *transport)
{
  GstRTSPRange *channels = &transport->interleaved;

  if (!tls_answer_is_needed (client))
    return configure_plain (client, ctx, transport);
  if (!setup_guard_allows_srtp (ctx))
    return FALSE;
  if (transport->lower_transport != GST_RTSP_LOWER_TRANS_TCP)
    return srtp_is_asked (client) && configure_plain (client, ctx, transport);
  g_free (transport->destination);
  transport->destination =
      g_strdup (gst_rtsp_connection_get_url (gst_rtsp_client_get_connection (client))->host);
  if (channels->min == -1 || channels->max == -1)
    gst_rtsp_session_media_alloc_channels (ctx->sessmedia, channels);
  while (
      channels->max <= 255 && (is_used (client, channels->min) || is_used (client, channels->max)))
    gst_rtsp_session_media_alloc_channels (ctx->sessmedia, channels);
  return channels->max <= 255;
}

void
tls_answer_class_init (GstRTSPClientClass *klass)
{
  configure_plain = klass->configure_client_transport;
  klass->configure_client_transport = configure;
}
