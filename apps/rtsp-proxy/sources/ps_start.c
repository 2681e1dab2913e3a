// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/ps_start.h"

#include <string.h>

static const guint8 pack_start[] = { 0, 0, 1, 0xba }; // ISO/IEC 11172-1, 2.4.3.2

// Drops what comes before a pack. One that begins in one buffer and ends in the next is not found;
// another one follows.
static GstPadProbeReturn
drop_before_pack (GstPad *pad, GstPadProbeInfo *info, gpointer unused)
{
  GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER (info);
  const guint8 *found = NULL;
  GstMapInfo map;
  gsize at = 0;

  if (gst_buffer_map (buffer, &map, GST_MAP_READ)) {
    found = memmem (map.data, map.size, pack_start, sizeof pack_start);
    at = found ? (gsize) (found - map.data) : 0;
    gst_buffer_unmap (buffer, &map);
  }
  if (!found)
    return GST_PAD_PROBE_DROP;
  GST_PAD_PROBE_INFO_DATA (info) =
      gst_buffer_copy_region (buffer, GST_BUFFER_COPY_ALL, at, (gsize) -1);
  gst_buffer_unref (buffer);
  return GST_PAD_PROBE_REMOVE;
}

void
ps_start_add (GstElement *demuxer)
{
  GstPad *pad = gst_element_get_static_pad (demuxer, "sink");

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, drop_before_pack, NULL, NULL);
  gst_object_unref (pad);
}
