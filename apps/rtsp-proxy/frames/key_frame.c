// SPDX-License-Identifier: LGPL-2.1-or-later
#include "frames/key_frame.h"

#include "rtp/rtp.h"

void
key_frame_init (KeyFrame *self, WeirCodec codec)
{
  *self = (KeyFrame) { .layers = { .codec = codec } };
}

void
key_frame_clear (KeyFrame *self)
{
  g_clear_pointer (&self->bytes, g_byte_array_unref);
}

static void
spoil_frame (KeyFrame *self)
{
  key_frame_clear (self);
  self->is_spoiled = TRUE;
}

// Returns the frame that was collected, if it is a keyframe.
static GBytes *
end_frame (KeyFrame *self)
{
  GByteArray *bytes = g_steal_pointer (&self->bytes);

  if (bytes && self->has_key)
    return g_byte_array_free_to_bytes (bytes);
  g_clear_pointer (&bytes, g_byte_array_unref);
  return NULL;
}

// Reports whether a payload of JPEG begins a frame: its offset is 0 (RFC 2435, 3.1.2).
static gboolean
begins_jpeg (const guint8 *payload, gsize len)
{
  return len >= 4 && payload[1] == 0 && payload[2] == 0 && payload[3] == 0;
}

// Begins to collect at the first packet that shows that a keyframe begins: parameter sets come
// before it, with its timestamp.
static void
read_payload (KeyFrame *self, const guint8 *payload, gsize len)
{
  WeirLayer layer = { 0 };

  weir_layers_read (&self->layers, payload, len, &layer);
  if (self->layers.codec == WEIR_CODEC_OPAQUE)
    layer.keyframe = begins_jpeg (payload, len);
  if (!self->bytes && !self->is_spoiled && (layer.keyframe || layer.parameters)) {
    self->bytes = g_byte_array_new ();
    self->has_key = FALSE;
  }
  self->has_key |= layer.keyframe;
}

static void
add (KeyFrame *self, const guint8 *packet, guint16 len)
{
  const guint8 head[] = { (guint8) (len >> 8), (guint8) len };

  g_byte_array_append (self->bytes, head, sizeof head);
  g_byte_array_append (self->bytes, packet, len);
  if (self->bytes->len > KEY_FRAME_BYTES_MAX)
    spoil_frame (self);
}

GBytes *
key_frame_take (KeyFrame *self, const guint8 *packet, gsize len)
{
  GBytes *ended = NULL;
  WeirRtp rtp;

  if (len > G_MAXUINT16 || weir_rtp_parse (packet, len, &rtp) < 0)
    return NULL;
  if (rtp.seq != (guint16) (self->seq + 1))
    spoil_frame (self);
  if (rtp.timestamp != self->timestamp) {
    ended = end_frame (self);
    self->is_spoiled = FALSE;
  }
  read_payload (self, packet + rtp.payload_offset, rtp.payload_length);
  if (self->bytes)
    add (self, packet, (guint16) len);
  self->timestamp = rtp.timestamp;
  self->seq = rtp.seq;
  return ended;
}
