// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/places.h"

#include "weir-rtsp.h"

static void
place_free (gpointer data)
{
  Place *self = data;

  g_clear_object (&self->transport);
  gst_object_unref (self->sink);
  g_free (self->host);
  g_free (self);
}

static void
add (GPtrArray *places, GstRTSPStreamTransport *transport, GstRTSPStream *stream, const gchar *host,
    gint port)
{
  GstElement *sink = weir_stream_find_sink (stream);
  Place *place;

  if (!sink)
    return;
  place = g_new (Place, 1);
  *place =
      (Place) { transport ? g_object_ref (transport) : NULL, stream, sink, g_strdup (host), port };
  g_ptr_array_add (places, place);
}

GPtrArray *
places_new (GstRTSPSessionMedia *media)
{
  GPtrArray *places = g_ptr_array_new_with_free_func (place_free);
  GPtrArray *transports = gst_rtsp_session_media_get_transports (media);

  for (guint i = 0; i < transports->len; i++) {
    GstRTSPStreamTransport *transport = g_ptr_array_index (transports, i);
    const GstRTSPTransport *t =
        transport ? gst_rtsp_stream_transport_get_transport (transport) : NULL;

    if (t && t->destination)
      add (places, transport, gst_rtsp_stream_transport_get_stream (transport), t->destination,
          t->client_port.min);
  }
  g_ptr_array_unref (transports);
  return places;
}

GPtrArray *
places_new_for_media (GstRTSPMedia *media, const gchar *name)
{
  GPtrArray *places = g_ptr_array_new_with_free_func (place_free);

  for (guint i = 0; i < gst_rtsp_media_n_streams (media); i++)
    add (places, NULL, gst_rtsp_media_get_stream (media, i), name, 0);
  return places;
}

gboolean
place_is_video (const Place *self)
{
  GstCaps *caps = gst_rtsp_stream_get_caps (self->stream);
  const gchar *media = caps && gst_caps_get_size (caps) > 0
                           ? gst_structure_get_string (gst_caps_get_structure (caps, 0), "media")
                           : NULL;
  gboolean is = !g_strcmp0 (media, "video");

  gst_clear_caps (&caps);
  return is;
}
