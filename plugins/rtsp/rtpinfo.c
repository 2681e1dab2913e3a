// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtpinfo.h"

#include "srtp.h"
#include "weir-rtsp.h"

#include <string.h>

static gboolean
sends_from (GstElement *sink, const gchar *property, GSocket *socket)
{
  GSocket *used = NULL;
  gboolean same;

  if (!socket)
    return FALSE;
  g_object_get (sink, property, &used, NULL);
  same = used == socket;
  g_clear_object (&used);
  return same;
}

// A stream has a sink for RTP and another for RTCP, with different sockets.
static gint
compare_sink (gconstpointer item, gconstpointer stream)
{
  GstElement *sink = g_value_get_object (item);
  GSocket *v4, *v6;
  gboolean same;

  if (!g_object_class_find_property (G_OBJECT_GET_CLASS (sink), "fanout-stats"))
    return 1;
  v4 = gst_rtsp_stream_get_rtp_socket ((gpointer) stream, G_SOCKET_FAMILY_IPV4);
  v6 = gst_rtsp_stream_get_rtp_socket ((gpointer) stream, G_SOCKET_FAMILY_IPV6);
  same = sends_from (sink, "socket", v4) || sends_from (sink, "socket-v6", v6);
  g_clear_object (&v4);
  g_clear_object (&v6);
  return !same;
}

GstElement *
weir_stream_find_sink (GstRTSPStream *stream)
{
  GstBin *bin = gst_rtsp_stream_get_joined_bin (stream);
  GstIterator *sinks = bin ? gst_bin_iterate_sinks (bin) : NULL;
  GstElement *found = NULL;
  GValue item = G_VALUE_INIT;

  if (sinks && gst_iterator_find_custom (sinks, compare_sink, &item, stream)) {
    found = g_value_dup_object (&item);
    g_value_unset (&item);
  }
  g_clear_pointer (&sinks, gst_iterator_free);
  g_clear_object (&bin);
  return found;
}

static GstStructure *
ask_sink (GstRTSPStreamTransport *transport)
{
  const GstRTSPTransport *t = gst_rtsp_stream_transport_get_transport (transport);
  GstElement *sink = weir_stream_find_sink (gst_rtsp_stream_transport_get_stream (transport));
  GstStructure *plan = NULL;

  if (sink && t->lower_transport == GST_RTSP_LOWER_TRANS_UDP)
    g_signal_emit_by_name (sink, "plan", t->destination, t->client_port.min, &plan);
  g_clear_pointer (&sink, gst_object_unref);
  return plan;
}

// Returns the item of a URL in the header, "url=…;seq=…;rtptime=…", or NULL. The caller owns the
// result.
static gchar *
find_item (gchar **items, const gchar *url)
{
  for (guint i = 0; items[i]; i++) {
    const gchar *item = g_strstrip (items[i]);
    gsize len = strlen (url);

    if (g_str_has_prefix (item, "url=") && strncmp (item + 4, url, len) == 0
        && (item[4 + len] == ';' || item[4 + len] == '\0'))
      return g_strdup (item);
  }
  return NULL;
}

// Formats "url=…;seq=…;rtptime=…" from the sink's plan. The caller owns the result.
static gchar *
format_plan (const gchar *url, const GstStructure *plan)
{
  GString *item = g_string_new (NULL);
  guint value;

  g_string_printf (item, "url=%s", url);
  if (gst_structure_get_uint (plan, "seq", &value))
    g_string_append_printf (item, ";seq=%u", value);
  if (gst_structure_get_uint (plan, "rtptime", &value))
    g_string_append_printf (item, ";rtptime=%u", value);
  return g_string_free (item, FALSE);
}

// ---- the function of the media ----

typedef struct {
  WeirRtpInfoFunc func;
  gpointer data;
  GDestroyNotify notify;
} InfoFunc;

static void
info_func_free (gpointer data)
{
  InfoFunc *self = data;

  if (self->notify)
    self->notify (self->data);
  g_free (self);
}

static GQuark
info_func_quark (void)
{
  return g_quark_from_static_string ("weir-rtp-info");
}

void
weir_media_set_rtp_info_func (
    GstRTSPMedia *media, WeirRtpInfoFunc func, gpointer data, GDestroyNotify notify)
{
  InfoFunc *self = g_new (InfoFunc, 1);

  *self = (InfoFunc) { func, data, notify };
  g_object_set_qdata_full (G_OBJECT (media), info_func_quark (), self, info_func_free);
}

static gchar *
ask_func (const InfoFunc *info, GstRTSPStreamTransport *transport, const gchar *uri)
{
  GstRTSPStream *stream = gst_rtsp_stream_transport_get_stream (transport);
  guint seq, rtptime;

  return info->func (stream, &seq, &rtptime, info->data)
             ? g_strdup_printf ("url=%s;seq=%u;rtptime=%u", uri, seq, rtptime)
             : NULL;
}

// ---- the header ----

// Replaces the sequence number of an item by that of a reader with numbers of its own. Takes
// ownership of `item`, which may be NULL; the caller owns the result.
static gchar *
map_item (GstRTSPStreamTransport *transport, gchar *item)
{
  const gchar *at = item ? strstr (item, ";seq=") : NULL;
  gchar *end, *mapped;
  guint64 seq;

  if (!at)
    return item;
  at += strlen (";seq=");
  seq = g_ascii_strtoull (at, &end, 10);
  mapped = g_strdup_printf (
      "%.*s%u%s", (int) (at - item), item, weir_srtp_map_seq (transport, (guint16) seq), end);
  g_free (item);
  return mapped;
}

static gchar *
make_item (GstRTSPStreamTransport *transport, gchar **items, const InfoFunc *info)
{
  const GstRTSPUrl *url = gst_rtsp_stream_transport_get_url (transport);
  gchar *uri = url ? gst_rtsp_url_get_request_uri (url) : NULL;
  GstStructure *plan = uri && !(info && !info->func) ? ask_sink (transport) : NULL;
  gchar *item = NULL;

  if (plan)
    item = format_plan (uri, plan);
  else if (uri)
    item = map_item (
        transport, info && info->func ? ask_func (info, transport, uri) : find_item (items, uri));
  g_clear_pointer (&plan, gst_structure_free);
  g_free (uri);
  return item;
}

static GPtrArray *
make_items (GstRTSPSessionMedia *media, const gchar *header, const InfoFunc *info)
{
  GPtrArray *transports = gst_rtsp_session_media_get_transports (media);
  GPtrArray *ours = g_ptr_array_new_with_free_func (g_free);
  gchar **items = g_strsplit (header ? header : "", ",", 0);

  for (guint i = 0; i < transports->len; i++) {
    GstRTSPStreamTransport *transport = g_ptr_array_index (transports, i);
    gchar *item = transport ? make_item (transport, items, info) : NULL;

    if (item)
      g_ptr_array_add (ours, item);
  }
  g_strfreev (items);
  g_ptr_array_unref (transports);
  return ours;
}

void
weir_rtp_info_rewrite (GstRTSPSessionMedia *media, GstRTSPMessage *response)
{
  const InfoFunc *info =
      g_object_get_qdata (G_OBJECT (gst_rtsp_session_media_get_media (media)), info_func_quark ());
  gchar *header = NULL;
  GPtrArray *ours;

  if (info && !info->func && !weir_session_media_has_srtp (media))
    return;
  gst_rtsp_message_get_header (response, GST_RTSP_HDR_RTP_INFO, &header, 0);
  ours = make_items (media, header, info);
  if (ours->len > 0 || info)
    gst_rtsp_message_remove_header (response, GST_RTSP_HDR_RTP_INFO, -1);
  if (ours->len > 0) {
    g_ptr_array_add (ours, NULL);
    gst_rtsp_message_take_header (
        response, GST_RTSP_HDR_RTP_INFO, g_strjoinv (", ", (gchar **) ours->pdata));
  }
  g_ptr_array_unref (ours);
}
