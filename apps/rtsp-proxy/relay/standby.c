// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relay/standby.h"

#include "codec/layers.h"
#include "rtp/rtp.h"

#define HELD_BYTES (8 * 1024 * 1024)
#define HELD_PACKETS 16384
// Number of packets of other tracks to keep while there is no join point: more than 1 s of audio.
#define OTHERS_MAX 256

struct _Standby {
  guint key_track; // the track whose join points count
  WeirLayers layers;
  GQueue packets; // of StandbyPacket
  gsize bytes;
  guint n_others; // packets of the other tracks
  gboolean in_frame;
  guint32 frame_timestamp;
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

static WeirCodec
codec_of (GstCaps *caps)
{
  GstStructure *s = gst_caps_get_structure (caps, 0);

  return weir_codec_from_sdp (
      gst_structure_get_string (s, "media"), gst_structure_get_string (s, "encoding-name"));
}

Standby *
standby_new (GPtrArray *caps)
{
  Standby *self = g_new0 (Standby, 1);

  self->layers.codec = WEIR_CODEC_AUDIO;
  for (guint i = caps->len; i-- > 0;) {
    WeirCodec codec = codec_of (g_ptr_array_index (caps, i));

    if (codec != WEIR_CODEC_AUDIO && codec != WEIR_CODEC_OPAQUE) {
      self->key_track = i;
      self->layers.codec = codec;
    }
  }
  return self;
}

void
standby_free (Standby *self)
{
  g_queue_clear_full (&self->packets, packet_free);
  g_free (self);
}

static void
drop (Standby *self, GList *link)
{
  StandbyPacket *packet = link->data;

  self->bytes -= gst_buffer_get_size (packet->packet);
  if (packet->track != self->key_track)
    self->n_others--;
  packet_free (packet);
  g_queue_delete_link (&self->packets, link);
}

// Drops the key track's packets before `end`, and the oldest of the others beyond OTHERS_MAX.
static void
drop_before (Standby *self, GList *end)
{
  for (GList *link = self->packets.head, *next; link != end; link = next) {
    next = link->next;
    if (((StandbyPacket *) link->data)->track == self->key_track || self->n_others > OTHERS_MAX)
      drop (self, link);
  }
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
    if (!self->in_frame || rtp.timestamp != self->frame_timestamp) {
      self->frame = self->packets.tail;
      self->frame_timestamp = rtp.timestamp;
    }
    self->in_frame = !rtp.marker && self->layers.codec != WEIR_CODEC_AUDIO;
    weir_layers_read (&self->layers, map.data + rtp.payload_offset, rtp.payload_length, &layer);
  }
  gst_buffer_unmap (buffer, &map);
  return layer.keyframe && self->frame;
}

gboolean
standby_push (Standby *self, guint track, GstBuffer *buffer, gint64 now, guint64 base)
{
  StandbyPacket *packet = g_new (StandbyPacket, 1);

  *packet = (StandbyPacket) { track, buffer, now, base };
  g_queue_push_tail (&self->packets, packet);
  self->bytes += gst_buffer_get_size (buffer);
  if (track != self->key_track)
    self->n_others++;
  else if (read_key (self, buffer)) {
    if (!self->joined)
      self->since = now;
    self->joined = TRUE;
    self->joined_at = now;
    drop_before (self, self->frame);
  }
  // A frame without a join point is dropped too if it does not end within the limit.
  if (!self->joined)
    drop_before (self, standby_is_full (self) ? NULL : self->frame);
  if (!self->packets.head)
    self->frame = NULL;
  return self->joined;
}

const StandbyPacket *
standby_get_join (Standby *self)
{
  for (GList *link = self->packets.head; link && self->joined; link = link->next) {
    if (((StandbyPacket *) link->data)->track == self->key_track)
      return link->data;
  }
  return NULL;
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
standby_is_full (Standby *self)
{
  return self->bytes > HELD_BYTES || self->packets.length > HELD_PACKETS;
}

gboolean
standby_pop (Standby *self, StandbyPacket *out)
{
  StandbyPacket *packet = g_queue_pop_head (&self->packets);

  if (!packet)
    return FALSE;
  *out = *packet;
  g_free (packet);
  return TRUE;
}
