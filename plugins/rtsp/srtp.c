// SPDX-License-Identifier: LGPL-2.1-or-later
#include "srtp.h"

#include <gst/net/gstnetaddressmeta.h>

#include "served.h"
#include "weir-rtsp.h"

// Has the form of a token, and is none.
#define NOWHERE "srtp-00000000000000000000000000000000"

// gst-rtsp-server keeps the address of a reader as this data of its transport, and adds it to each
// packet that the reader sends within the connection.
#define SENDER "rtsp-client.remote-addr"

// Data of a WeirSrtp that encrypts nothing.
#define PLAIN "weir-plain"

static guint64 refused; // atomic

static GQuark
srtp_quark (void)
{
  return g_quark_from_static_string ("weir-srtp");
}

gboolean
weir_client_can_use_srtp (GstRTSPClient *client, GstRTSPStream *stream)
{
  Served *self = weir_served_get (client);

  return self && !self->stock && gst_rtsp_stream_is_sender (stream)
         && gst_rtsp_stream_get_protocols (stream) & GST_RTSP_LOWER_TRANS_UDP;
}

// Makes gst-rtsp-server add an address to RTCP from within the connection that leads to the keys.
static void
name_sender (GstRTSPStreamTransport *transport, GObject *srtp)
{
  GSocketAddress *address = g_inet_socket_address_new_from_string ("0.0.0.0", 0);

  g_object_set_qdata_full (G_OBJECT (address), srtp_quark (), g_object_ref (srtp), g_object_unref);
  g_object_set_data_full (G_OBJECT (transport), SENDER, address, g_object_unref);
}

void
weir_transport_set_feedback (GstRTSPClient *client, GstRTSPStreamTransport *transport, guint id)
{
  const GstRTSPTransport *t = gst_rtsp_stream_transport_get_transport (transport);
  GObject *plain;

  if (t->lower_transport != GST_RTSP_LOWER_TRANS_UDP || weir_transport_has_srtp (transport)
      || !weir_client_can_use_srtp (client, gst_rtsp_stream_transport_get_stream (transport)))
    return;
  weir_transport_clear_srtp (transport); // of an earlier SETUP
  plain = g_object_new (g_type_from_name ("WeirSrtp"), "destination", t->destination, "profile",
      "none", "transport-id", id, NULL);
  g_object_set_data (plain, PLAIN, plain);
  g_object_set_qdata_full (G_OBJECT (transport), srtp_quark (), plain, g_object_unref);
}

gboolean
weir_transport_read_line (GstRTSPStreamTransport *transport, guint64 now, gpointer view)
{
  GObject *srtp = weir_srtp_dup (transport);
  gboolean known = FALSE;

  if (srtp)
    g_signal_emit_by_name (srtp, "read-estimate", view, now, &known);
  g_clear_object (&srtp);
  return known;
}

void
weir_transport_set_srtp (
    GstRTSPClient *client, GstRTSPStreamTransport *transport, GBytes *send_key, GBytes *receive_key)
{
  const GstRTSPTransport *t = gst_rtsp_stream_transport_get_transport (transport);
  Served *self = weir_served_get (client);
  gboolean tcp = t->lower_transport == GST_RTSP_LOWER_TRANS_TCP;
  GObject *srtp;

  weir_transport_clear_srtp (transport); // of an earlier SETUP
  weir_served_take_over (self);
  srtp = g_object_new (g_type_from_name ("WeirSrtp"), "destination",
      tcp ? self->token : t->destination, "send-key", send_key, "receive-key", receive_key, NULL);
  if (tcp)
    name_sender (transport, srtp);
  g_object_set_qdata_full (G_OBJECT (transport), srtp_quark (), srtp, g_object_unref);
}

gboolean
weir_transport_has_srtp (GstRTSPStreamTransport *transport)
{
  GObject *srtp = weir_srtp_dup (transport);
  gboolean has = srtp && !g_object_get_data (srtp, PLAIN);

  g_clear_object (&srtp);
  return has;
}

gboolean
weir_session_media_has_srtp (GstRTSPSessionMedia *media)
{
  GPtrArray *transports = gst_rtsp_session_media_get_transports (media);
  gboolean has = FALSE;

  for (guint i = 0; i < transports->len; i++) {
    GstRTSPStreamTransport *transport = g_ptr_array_index (transports, i);

    has |= transport && weir_transport_has_srtp (transport);
  }
  g_ptr_array_unref (transports);
  return has;
}

void
weir_transport_clear_srtp (GstRTSPStreamTransport *transport)
{
  if (g_object_get_qdata (G_OBJECT (transport), srtp_quark ()))
    g_object_set_data (G_OBJECT (transport), SENDER, NULL);
  g_object_set_qdata (G_OBJECT (transport), srtp_quark (), NULL);
}

guint64
weir_srtp_get_refused (void)
{
  return __atomic_load_n (&refused, __ATOMIC_RELAXED);
}

static gpointer
ref_object (gpointer object, gpointer unused)
{
  return object ? g_object_ref (object) : NULL;
}

GObject *
weir_srtp_dup (GstRTSPStreamTransport *transport)
{
  return g_object_dup_qdata (G_OBJECT (transport), srtp_quark (), ref_object, NULL);
}

gchar *
weir_srtp_dup_token (GstRTSPStreamTransport *transport)
{
  GObject *srtp = weir_srtp_dup (transport);
  gchar *token = NULL;

  if (!srtp)
    return NULL;
  g_object_get (srtp, "token", &token, NULL);
  g_object_unref (srtp);
  return token ? token : g_strdup (NOWHERE);
}

guint
weir_srtp_map_seq (GstRTSPStreamTransport *transport, guint seq)
{
  GObject *srtp = weir_srtp_dup (transport);

  if (srtp)
    g_signal_emit_by_name (srtp, "next-seq", seq, &seq);
  g_clear_object (&srtp);
  return seq;
}

gssize
weir_srtp_unprotect (GObject *srtp, guint8 *data, gsize len)
{
  gint plain;

  g_signal_emit_by_name (srtp, "unprotect", data, (guint) MIN (len, G_MAXUINT), &plain);
  if (plain < 0)
    __atomic_fetch_add (&refused, 1, __ATOMIC_RELAXED);
  else
    g_signal_emit_by_name (
        srtp, "feedback", data, (guint) plain, (guint64) g_get_monotonic_time () * 1000);
  return plain;
}

gboolean
weir_srtp_unprotect_buffer (GObject *srtp, GstBuffer **buffer)
{
  gssize plain = -1;
  GstMapInfo map;

  *buffer = gst_buffer_make_writable (*buffer);
  if (gst_buffer_map (*buffer, &map, GST_MAP_READWRITE)) {
    plain = weir_srtp_unprotect (srtp, map.data, map.size);
    gst_buffer_unmap (*buffer, &map);
  }
  if (plain >= 0)
    gst_buffer_set_size (*buffer, plain);
  return plain >= 0;
}

GObject *
weir_srtp_dup_of_sender (GstBuffer *buffer)
{
  GstNetAddressMeta *meta = gst_buffer_get_net_address_meta (buffer);
  GObject *srtp = meta ? g_object_get_qdata (G_OBJECT (meta->addr), srtp_quark ()) : NULL;

  return srtp ? g_object_ref (srtp) : NULL;
}
