// SPDX-License-Identifier: LGPL-2.1-or-later
#include "joins.h"

#include "core/rtp/rtp.h"
#include "layers/layercaps.h"

void
cache_joins_set_caps (CacheJoins *self, GstCaps *caps)
{
  WeirCodec codec;
  guint length_size, clock_rate;
  gboolean rtp, known = layer_caps_read (caps, &codec, &rtp, &length_size, &clock_rate);

  *self = (CacheJoins) { .read_rtp = rtp && known && codec != WEIR_CODEC_AUDIO };
  self->layers.codec = codec;
}

static gboolean
payload_is_join (CacheJoins *self, const guint8 *data, const WeirRtp *rtp)
{
  WeirLayer layer;

  weir_layers_read (&self->layers, data + rtp->payload_offset, rtp->payload_length, &layer);
  return layer.keyframe || layer.parameters;
}

static void
begin_frame (CacheJoins *self, guint32 time, gint64 position)
{
  if (self->in_frame && time == self->frame_time)
    return;
  self->in_frame = TRUE;
  self->frame_is_join = FALSE;
  self->frame_time = time;
  self->frame_start = position;
}

// Returns TRUE if this packet shows that its frame is a join point.
static gboolean
look_at_packet (CacheJoins *self, GstBuffer *buffer, gint64 position)
{
  gboolean found = FALSE;
  GstMapInfo map;
  WeirRtp rtp;

  if (!gst_buffer_map (buffer, &map, GST_MAP_READ))
    return FALSE;
  if (weir_rtp_parse (map.data, map.size, &rtp) == 0) {
    begin_frame (self, rtp.timestamp, position);
    found = payload_is_join (self, map.data, &rtp) && !self->frame_is_join;
    self->frame_is_join |= found;
  }
  gst_buffer_unmap (buffer, &map);
  return found;
}

static gboolean
is_join (GstBuffer *buffer)
{
  return !GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_DELTA_UNIT);
}

static gint64
look_at (CacheJoins *self, GstBuffer *buffer, gint64 position)
{
  if (!self->read_rtp)
    return is_join (buffer) ? position : WEIR_CACHE_NO_POSITION;
  return look_at_packet (self, buffer, position) ? self->frame_start : WEIR_CACHE_NO_POSITION;
}

gint64
cache_joins_look (CacheJoins *self, GstMiniObject *object, gint64 position)
{
  GstBufferList *list;
  gint64 join = WEIR_CACHE_NO_POSITION;

  if (GST_IS_BUFFER (object))
    return look_at (self, GST_BUFFER (object), position);
  list = GST_BUFFER_LIST (object);
  for (guint i = 0; i < gst_buffer_list_length (list); i++) {
    const gint64 each = look_at (self, gst_buffer_list_get (list, i), position);

    if (each < join)
      join = each;
  }
  return join;
}
