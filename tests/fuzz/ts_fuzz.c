// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the readers of transport streams in front of the demultiplexer. The first byte of the
// input is the number of bytes in a buffer, in packets; the other bytes are the stream.

#include "app.h"
#include "sources/ts_clock.h"
#include "sources/ts_guard.h"

#define TS_PACKET 188

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  init_gst ();
  only_critical ();
  return 0;
}

static GByteArray *passed;

static GstFlowReturn
on_buffer (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstMapInfo map;

  require (GST_BUFFER_DTS (buffer) == GST_BUFFER_PTS (buffer));
  require (gst_buffer_map (buffer, &map, GST_MAP_READ));
  g_byte_array_append (passed, map.data, (guint) map.size);
  gst_buffer_unmap (buffer, &map);
  gst_buffer_unref (buffer);
  return GST_FLOW_OK;
}

// Returns what the demultiplexer would get. (transfer full)
static GByteArray *
pass (const uint8_t *data, gsize size, gsize piece, gboolean with_clock)
{
  GstElement *demux = gst_object_ref_sink (gst_bin_new (NULL));
  GstPad *pad = gst_pad_new ("sink", GST_PAD_SINK);
  GstClockTime now = 0;
  GstSegment segment;

  passed = g_byte_array_new ();
  gst_pad_set_chain_function (pad, on_buffer);
  gst_pad_set_active (pad, TRUE);
  gst_element_add_pad (demux, pad);
  if (with_clock)
    ts_clock_add (demux);
  ts_guard_add (demux);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_pad_send_event (pad, gst_event_new_stream_start ("fuzz"));
  gst_pad_send_event (pad, gst_event_new_segment (&segment));
  for (gsize at = 0; at < size; at += piece) {
    GstBuffer *buffer = gst_buffer_new_memdup (data + at, MIN (piece, size - at));

    GST_BUFFER_DTS (buffer) = GST_BUFFER_PTS (buffer) = now;
    now += data[at] * GST_MSECOND * 10;
    gst_pad_chain (pad, buffer);
  }
  gst_object_unref (demux);
  return g_steal_pointer (&passed);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  GByteArray *once, *twice;

  if (size < 2 || size > 64 * TS_PACKET)
    return 0;
  once = pass (data + 1, size - 1, (1 + data[0] % 8) * TS_PACKET, TRUE);
  require (once->len == size - 1);
  // Nothing is left to change.
  twice = pass (once->data, once->len, (1 + data[0] % 8) * TS_PACKET, FALSE);
  require (!memcmp (once->data, twice->data, once->len));
  g_byte_array_unref (once);
  g_byte_array_unref (twice);
  return 0;
}
