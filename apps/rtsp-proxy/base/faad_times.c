// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/faad_times.h"

// faad decodes a frame in the thread that brings it, and keeps none back.
static GstPadProbeReturn
on_frame (GstPad *pad, GstPadProbeInfo *info, gpointer time)
{
  *(GstClockTime *) time = GST_BUFFER_PTS (GST_PAD_PROBE_INFO_BUFFER (info));
  return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn
on_samples (GstPad *pad, GstPadProbeInfo *info, gpointer time)
{
  GstBuffer *samples = gst_buffer_make_writable (GST_PAD_PROBE_INFO_BUFFER (info));

  GST_BUFFER_PTS (samples) = *(GstClockTime *) time;
  GST_PAD_PROBE_INFO_DATA (info) = samples;
  return GST_PAD_PROBE_OK;
}

static void
mend (const GValue *value, gpointer unused)
{
  GstElement *element = g_value_get_object (value);
  GstElementFactory *factory = gst_element_get_factory (element);
  GstClockTime *time;
  GstPad *pad;

  if (!factory || !g_str_equal (GST_OBJECT_NAME (factory), "faad"))
    return;
  time = g_new0 (GstClockTime, 1);
  g_object_set_data_full (G_OBJECT (element), "weir-time", time, g_free);
  pad = gst_element_get_static_pad (element, "sink");
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, on_frame, time, NULL);
  gst_object_unref (pad);
  pad = gst_element_get_static_pad (element, "src");
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, on_samples, time, NULL);
  gst_object_unref (pad);
}

void
faad_times_mend (GstElement *pipeline)
{
  g_autoptr (GstIterator) all = gst_bin_iterate_recurse (GST_BIN (pipeline));

  gst_iterator_foreach (all, mend, NULL); // nothing else changes the pipeline yet
}
