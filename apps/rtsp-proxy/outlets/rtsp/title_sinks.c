// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/title_sinks.h"

#include <gst/base/gstbasesink.h>

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
}

// Returns the stream time of the last packet that a sink has sent or, paused, of the one it holds,
// or GST_CLOCK_TIME_NONE for a sink of RTCP.
static GstClockTime
sent_up_to (GstElement *sink)
{
  g_autoptr (GstSample) sample = NULL;
  GstClockTime at = GST_CLOCK_TIME_NONE;

  g_object_get (sink, "last-sample", &sample, NULL);
  if (!sample)
    return at;
  if (gst_sample_get_buffer (sample) && gst_sample_get_caps (sample)
      && gst_structure_has_name (
          gst_caps_get_structure (gst_sample_get_caps (sample), 0), "application/x-rtp"))
    at = gst_segment_to_stream_time (gst_sample_get_segment (sample), GST_FORMAT_TIME,
        GST_BUFFER_PTS (gst_sample_get_buffer (sample)));
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
