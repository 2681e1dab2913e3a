// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relay/standby.h"

#include "relay/relay_caps.h"
#include "rtp/rtp.h"

#define HELD_BYTES (8 * 1024 * 1024)
#define HELD_PACKETS 16384
#define HELD_TIME (30 * GST_SECOND)
// Number of packets of other tracks to keep while there is no join point: more than 1 s of audio.
#define OTHERS_MAX 256

struct _Standby {
  guint key_track; // the track whose join points count
  WeirLayers layers;
  GQueue keys;   // of StandbyPacket: the packets of the key track
  GQueue others; // of StandbyPacket: the packets of the other tracks
  gsize bytes;
  guint64 n_pushed;
  gboolean in_frame;
  guint32 frame_timestamp;
  guint32 ssrc; // of the key track
  gboolean joined;
  gint64 since, joined_at;
  GList *frame; // the first packet of the current frame
};

static void
packet_free (gpointer data)
{
  StandbyPacket *packet = data;

  gst_clear_buffer (&packet->packet);
  g_free (packet);
}

Standby *
standby_new (GPtrArray *caps)
{
  Standby *self = g_new0 (Standby, 1);

  self->layers.codec = WEIR_CODEC_AUDIO;
  for (guint i = caps->len; i-- > 0;) {
    WeirCodec codec = relay_caps_get_codec (g_ptr_array_index (caps, i));

    if (codec != WEIR_CODEC_AUDIO && codec != WEIR_CODEC_OPAQUE) {
      self->key_track = i;
      self->layers.codec = codec;
    }
  }
  return self;
}

void
standby_clear (Standby *self)
{
  g_queue_clear_full (&self->keys, packet_free);
  g_queue_clear_full (&self->others, packet_free);
  self->bytes = 0;
  self->in_frame = self->joined = FALSE;
  self->frame = NULL;
}

void
standby_free (Standby *self)
{
  standby_clear (self);
  g_free (self);
}

guint
standby_get_key_track (Standby *self)
{
  return self->key_track;
}

static gboolean
pop (Standby *self, GQueue *queue, StandbyPacket *out)
{
  g_autofree StandbyPacket *packet = g_queue_pop_head (queue);

  if (!packet)
    return FALSE;
  self->bytes -= gst_buffer_get_size (packet->packet);
  *out = *packet;
  return TRUE;
}

static void
drop (Standby *self, GQueue *queue)
{
  StandbyPacket packet;

  if (pop (self, queue, &packet))
    gst_buffer_unref (packet.packet);
}

// Drops the key track's packets before `end`, and older packets of the others beyond OTHERS_MAX.
static void
drop_before (Standby *self, GList *end)
{
  const StandbyPacket *other, *first = end ? end->data : NULL;

  while (self->keys.head != end)
    drop (self, &self->keys);
  while (self->others.length > OTHERS_MAX && (other = self->others.head->data)
         && (!first || other->order < first->order))
    drop (self, &self->others);
}

// Reports whether the last packet in the queue shows that its frame is a join point. A frame begins
// with its parameter sets, so its earlier packets are kept.
static gboolean
read_key (Standby *self, GstBuffer *buffer)
{
  GstMapInfo map;
  WeirRtp rtp;
  WeirLayer layer = { 0 };

  if (!gst_buffer_map (buffer, &map, GST_MAP_READ))
    return FALSE;
  if (weir_rtp_parse (map.data, map.size, &rtp) == 0) {
    // Packets of two streams do not belong together.
    if (rtp.ssrc != self->ssrc && self->joined) {
      while (self->keys.length > 1)
        drop (self, &self->keys);
      self->in_frame = self->joined = FALSE;
    }
    self->ssrc = rtp.ssrc;
    if (!self->in_frame || rtp.timestamp != self->frame_timestamp) {
      self->frame = self->keys.tail;
      self->frame_timestamp = rtp.timestamp;
    }
    self->in_frame = !rtp.marker && self->layers.codec != WEIR_CODEC_AUDIO;
    weir_layers_read (&self->layers, map.data + rtp.payload_offset, rtp.payload_length, &layer);
  }
  gst_buffer_unmap (buffer, &map);
  return layer.keyframe && self->frame;
}

void
standby_append (Standby *self, guint track, GstBuffer *buffer, gint64 now, guint64 base)
{
  StandbyPacket *packet = g_new (StandbyPacket, 1);

  *packet = (StandbyPacket) { track, buffer, now, base, self->n_pushed++ };
  g_queue_push_tail (track == self->key_track ? &self->keys : &self->others, packet);
  self->bytes += gst_buffer_get_size (buffer);
}

void
standby_push (Standby *self, guint track, GstBuffer *buffer, gint64 now, guint64 base)
{
  standby_append (self, track, buffer, now, base);
  if (track == self->key_track && read_key (self, buffer)) {
    if (!self->joined)
      self->since = now;
    self->joined = TRUE;
    self->joined_at = now;
    drop_before (self, self->frame);
  }
  // A frame without a join point is dropped too if it does not end within the limit.
  if (!self->joined)
    drop_before (self, standby_is_full (self, now) ? NULL : self->frame);
  if (!self->keys.head)
    self->frame = NULL;
}

const StandbyPacket *
standby_get_join (Standby *self)
{
  return self->joined ? standby_peek (self) : NULL;
}

gint64
standby_get_since (Standby *self)
{
  return self->since;
}

gint64
standby_get_joined (Standby *self)
{
  return self->joined_at;
}

gboolean
standby_is_full (Standby *self, gint64 now)
{
  const StandbyPacket *first = standby_peek (self);

  return self->bytes > HELD_BYTES || self->keys.length + self->others.length > HELD_PACKETS
         || (first && now - first->now > (gint64) HELD_TIME);
}

const StandbyPacket *
standby_peek (Standby *self)
{
  return g_queue_peek_head (&self->keys);
}

void
standby_ref_all (Standby *self, GArray *packets)
{
  for (GList *l = self->joined ? self->keys.head : NULL; l; l = l->next) {
    const StandbyPacket *packet = l->data;

    gst_buffer_ref (packet->packet);
    g_array_append_val (packets, *packet);
  }
}

gboolean
standby_pop_key (Standby *self, StandbyPacket *packet)
{
  return pop (self, &self->keys, packet);
}

gboolean
standby_pop_other (Standby *self, StandbyPacket *packet)
{
  return pop (self, &self->others, packet);
}

gboolean
standby_pop (Standby *self, StandbyPacket *packet)
{
  const StandbyPacket *key = standby_peek (self);
  const StandbyPacket *other = g_queue_peek_head (&self->others);

  return pop (
      self, !key || (other && other->order < key->order) ? &self->others : &self->keys, packet);
}
