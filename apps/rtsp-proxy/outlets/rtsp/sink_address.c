// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/sink_address.h"

#include "weir-rtsp.h"

static void
sink_address_free (gpointer data)
{
  SinkAddress *self = data;

  g_clear_object (&self->transport);
  gst_object_unref (self->sink);
  g_free (self->host);
  g_free (self);
}

static void
add (GPtrArray *addresses, GstRTSPStreamTransport *transport, GstRTSPStream *stream,
    const gchar *host, gint port)
{
  GstElement *sink = weir_stream_find_sink (stream);
  SinkAddress *address;

  if (!sink)
    return;
  address = g_new (SinkAddress, 1);
  *address = (SinkAddress) { transport ? g_object_ref (transport) : NULL, stream, sink,
    g_strdup (host), port };
  g_ptr_array_add (addresses, address);
}

GPtrArray *
sink_addresses_new (GstRTSPSessionMedia *media)
{
  GPtrArray *addresses = g_ptr_array_new_with_free_func (sink_address_free);
  g_autoptr (GPtrArray) transports = gst_rtsp_session_media_get_transports (media);

  for (guint i = 0; i < transports->len; i++) {
    GstRTSPStreamTransport *transport = g_ptr_array_index (transports, i);
    const GstRTSPTransport *t =
        transport ? gst_rtsp_stream_transport_get_transport (transport) : NULL;

    if (t && t->destination)
      add (addresses, transport, gst_rtsp_stream_transport_get_stream (transport), t->destination,
          t->client_port.min);
  }
  return addresses;
}

GPtrArray *
sink_addresses_new_for_media (GstRTSPMedia *media, const gchar *name)
{
  GPtrArray *addresses = g_ptr_array_new_with_free_func (sink_address_free);

  for (guint i = 0; i < gst_rtsp_media_n_streams (media); i++)
    add (addresses, NULL, gst_rtsp_media_get_stream (media, i), name, 0);
  return addresses;
}

gboolean
sink_address_is_video (const SinkAddress *self)
{
  g_autoptr (GstCaps) caps = gst_rtsp_stream_get_caps (self->stream);
  const gchar *media = caps && gst_caps_get_size (caps) > 0
                           ? gst_structure_get_string (gst_caps_get_structure (caps, 0), "media")
                           : NULL;

  return !g_strcmp0 (media, "video");
}
