// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/ts/byte_stream.h"

#include "bits/bytes.h"
#include "codec/h264.h"

#define LENGTH 4 // bytes, as depayloaders and parsers write it; a start code is as long

static const guint8 start_code[LENGTH] = { 0, 0, 0, 1 };
static const guint8 delimiter[] = { 0, 0, 0, 1, WEIR_H264_AUD, 0xf0 }; // of any kind of slices

static gsize
write_units (guint8 *to, const GstMapInfo *frame)
{
  WeirBytes b = weir_bytes (frame->data, frame->size);
  const uint8_t *unit;
  guint8 *at = to;
  uint32_t size;

  while (weir_bytes_u32 (&b, &size) && weir_bytes_take (&b, size, &unit)) {
    memcpy (at, start_code, LENGTH);
    memcpy (at + LENGTH, unit, size);
    at += LENGTH + size;
  }
  return (gsize) (at - to);
}

static gboolean
has_delimiter (const GstMapInfo *frame)
{
  return frame->size > LENGTH && (frame->data[LENGTH] & 31) == WEIR_H264_AUD;
}

GstBuffer *
byte_stream_copy (GstBuffer *frame, gboolean is_h264)
{
  gsize size = 0;
  GstBuffer *copy;
  guint8 *data;
  GstMapInfo map;

  if (!gst_buffer_map (frame, &map, GST_MAP_READ))
    return gst_buffer_ref (frame);
  data = g_malloc (sizeof delimiter + map.size);
  if (is_h264 && !has_delimiter (&map)) {
    memcpy (data, delimiter, sizeof delimiter);
    size = sizeof delimiter;
  }
  size += write_units (data + size, &map);
  gst_buffer_unmap (frame, &map);
  copy = gst_buffer_new_wrapped_full (0, data, sizeof delimiter + map.size, 0, size, data, g_free);
  gst_buffer_copy_into (copy, frame, GST_BUFFER_COPY_FLAGS | GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  return copy;
}

GstCaps *
byte_stream_caps (const GstCaps *caps)
{
  GstCaps *copy = gst_caps_copy (caps);

  gst_caps_set_simple (copy, "stream-format", G_TYPE_STRING, "byte-stream", NULL);
  gst_structure_remove_field (gst_caps_get_structure (copy, 0), "codec_data");
  return copy;
}
