// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/title_sinks.h"

#include <gst/base/gstbasesink.h>

static GQuark
left_quark (void)
{
  return g_quark_from_static_string ("rtsp-proxy-left-at");
}

static gpointer
dup_left (gpointer left, gpointer unused)
{
  return g_memdup2 (left, sizeof (guint));
}

// Notes how far the reader had got: the title plays on for a moment, and what comes then, or waits
// to be sent, does not reach the reader.
static void
on_client_removed (GstElement *sink, const gchar *host, gint port, gpointer unused)
{
  g_autoptr (GstStructure) stats = NULL;
  guint *left = NULL, at;

  g_signal_emit_by_name (sink, "get-stats", host, port, &stats);
  if (stats && gst_structure_get_uint (stats, "rtptime", &at))
    left = g_memdup2 (&at, sizeof at);
  g_object_set_qdata_full (G_OBJECT (sink), left_quark (), left, g_free);
}

static void
on_element_added (GstBin *pipeline, GstBin *bin, GstElement *element, gpointer unused)
{
  if (!GST_IS_BASE_SINK (element))
    return;
  // ratepacer has paced the packets.
  gst_base_sink_set_sync (GST_BASE_SINK (element), FALSE);
  if (!g_object_class_find_property (G_OBJECT_GET_CLASS (element), "max-coalesce"))
    return;
  // The sink may still hold packets of the position before a seek.
  gst_util_set_object_arg (G_OBJECT (element), "join", "live");
  g_object_set (element, "max-coalesce", (guint64) 0, NULL);
  g_signal_connect (element, "client-removed", G_CALLBACK (on_client_removed), NULL);
}

// Returns by how much the packet is after the one at which the sink's reader was left, in ns of
// running time; 0 if it is not, or that is not known.
static GstClockTime
get_unsent (GstElement *sink, GstBuffer *packet, const GstStructure *caps)
{
  g_autofree guint *left = g_object_dup_qdata (G_OBJECT (sink), left_quark (), dup_left, NULL);
  guint8 timestamp[4];
  gint rate, ticks;

  if (!left || !gst_structure_get_int (caps, "clock-rate", &rate) || rate <= 0
      || gst_buffer_extract (packet, 4, timestamp, sizeof timestamp) < sizeof timestamp)
    return 0;
  ticks = (gint) (GST_READ_UINT32_BE (timestamp) - *left);
  return gst_util_uint64_scale_int ((guint64) MAX (ticks, 0), GST_SECOND, rate);
}

// Returns the stream time of the packet with which the reader goes on, which is `packet`, the
// sink's last one, or before it.
static GstClockTime
find_left (GstElement *sink, GstBuffer *packet, const GstStructure *caps, const GstSegment *segment)
{
  GstClockTime at = gst_segment_to_running_time (segment, GST_FORMAT_TIME, GST_BUFFER_PTS (packet));
  GstClockTime unsent = get_unsent (sink, packet, caps);

  if (GST_CLOCK_TIME_IS_VALID (at))
    at = gst_segment_position_from_running_time (segment, GST_FORMAT_TIME, at - MIN (unsent, at));
  return gst_segment_to_stream_time (segment, GST_FORMAT_TIME, at);
}

// Returns the stream time up to which a sink has sent its packets, or GST_CLOCK_TIME_NONE for a
// sink of RTCP.
static GstClockTime
sent_up_to (GstElement *sink)
{
  g_autoptr (GstSample) sample = NULL;
  GstClockTime at = GST_CLOCK_TIME_NONE;
  const GstStructure *caps;

  g_object_get (sink, "last-sample", &sample, NULL);
  if (!sample)
    return at;
  caps = gst_sample_get_caps (sample) ? gst_caps_get_structure (gst_sample_get_caps (sample), 0)
                                      : NULL;
  if (gst_sample_get_buffer (sample) && caps && gst_structure_has_name (caps, "application/x-rtp"))
    at = find_left (sink, gst_sample_get_buffer (sample), caps, gst_sample_get_segment (sample));
  return at;
}

static void
note_sent (const GValue *item, gpointer least)
{
  GstClockTime at = sent_up_to (g_value_get_object (item));

  if (GST_CLOCK_TIME_IS_VALID (at))
    *(GstClockTime *) least = MIN (*(GstClockTime *) least, at);
}

GstClockTime
title_sinks_get_sent (GstBin *pipeline)
{
  g_autoptr (GstIterator) sinks = gst_bin_iterate_sinks (pipeline);
  GstClockTime least = GST_CLOCK_TIME_NONE;

  gst_iterator_foreach (sinks, note_sent, &least);
  return least;
}

void
title_sinks_set_up (GstBin *pipeline)
{
  g_signal_connect (pipeline, "deep-element-added", G_CALLBACK (on_element_added), NULL);
}
