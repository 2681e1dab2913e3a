// SPDX-License-Identifier: LGPL-2.1-or-later
#include "srtp.h"

#include "served.h"
#include "weir-rtsp.h"

// Has the form of a token, and is none.
#define NOWHERE "srtp-00000000000000000000000000000000"

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

  return g_type_from_name ("WeirSrtp") != 0 && self && !self->stock
         && gst_rtsp_stream_is_sender (stream)
         && gst_rtsp_stream_get_protocols (stream) & GST_RTSP_LOWER_TRANS_UDP;
}

void
weir_transport_set_srtp (
    GstRTSPClient *client, GstRTSPStreamTransport *transport, GBytes *send_key, GBytes *receive_key)
{
  const GstRTSPTransport *t = gst_rtsp_stream_transport_get_transport (transport);
  Served *self = weir_served_get (client);
  gboolean tcp = t->lower_transport == GST_RTSP_LOWER_TRANS_TCP;

  weir_served_take_over (self);
  g_object_set_qdata_full (G_OBJECT (transport), srtp_quark (),
      g_object_new (g_type_from_name ("WeirSrtp"), "destination",
          tcp ? self->token : t->destination, "send-key", send_key, "receive-key", receive_key,
          NULL),
      g_object_unref);
}

gboolean
weir_transport_has_srtp (GstRTSPStreamTransport *transport)
{
  return g_object_get_qdata (G_OBJECT (transport), srtp_quark ()) != NULL;
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
  return plain;
}
