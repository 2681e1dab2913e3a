// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bits/bytes.h"
#include "codec/layers_private.h"

// Bits of the extension byte (RFC 7741, section 4.2).
enum { PICTURE_ID = 0x80, TL0PICIDX = 0x40, TID = 0x20, KEYIDX = 0x10 };

static bool
read_extension (WeirBytes *b, WeirLayer *out, bool *layer_sync)
{
  uint8_t have, id, tid;

  weir_bytes_u8 (b, &have);
  if (have & PICTURE_ID) {
    weir_bytes_u8 (b, &id);
    if (id & 0x80)
      weir_bytes_skip (b, 1);
  }
  if (have & TL0PICIDX)
    weir_bytes_skip (b, 1);
  if (have & (TID | KEYIDX)) {
    weir_bytes_u8 (b, &tid);
    if (have & TID) {
      out->temporal = tid >> 6;
      *layer_sync = tid >> 5 & 1;
    }
  }
  return !b->failed;
}

// Reads the whole descriptor. Behind it is the frame's data.
static bool
read_descriptor (WeirBytes *b, uint8_t *descriptor, WeirLayer *out, bool *layer_sync)
{
  return weir_bytes_u8 (b, descriptor)
         && (!(*descriptor & 0x80) || read_extension (b, out, layer_sync));
}

bool
weir_layers_read_vp8 (const uint8_t *payload, size_t len, WeirLayer *out)
{
  WeirBytes b = weir_bytes (payload, len);
  uint8_t descriptor, frame;
  bool layer_sync = false;

  if (!read_descriptor (&b, &descriptor, out, &layer_sync) || !weir_bytes_u8 (&b, &frame))
    return false;
  // The start of the first partition holds the frame header; its first bit is 0 in a key frame.
  out->keyframe = (descriptor & 0x17) == 0x10 && !(frame & 1);
  out->enter = out->keyframe;
  out->discardable = descriptor >> 5 & 1;
  out->switch_up = layer_sync || out->temporal == 0;
  return true;
}

size_t
weir_vp8_data_at (const uint8_t *payload, size_t len)
{
  WeirBytes b = weir_bytes (payload, len);
  WeirLayer layer = { 0 };
  bool layer_sync;
  uint8_t descriptor;

  if (!read_descriptor (&b, &descriptor, &layer, &layer_sync))
    return len;
  return (size_t) (b.at - payload);
}

size_t
weir_vp8_picture_id_at (const uint8_t *payload, size_t len, bool *wide)
{
  if (len < 3 || !(payload[0] & 0x80) || !(payload[1] & PICTURE_ID))
    return 0;
  *wide = payload[2] & 0x80;
  return *wide && len < 4 ? 0 : 2;
}

void
weir_vp8_shift_picture_id (uint8_t *payload, size_t len, uint16_t by)
{
  uint16_t id;
  bool wide;

  if (weir_vp8_picture_id_at (payload, len, &wide) == 0)
    return;
  if (!wide) {
    payload[2] = (payload[2] - by) & 0x7f;
  } else {
    id = (uint16_t) ((payload[2] << 8 | payload[3]) - by);
    payload[2] = (uint8_t) (0x80 | id >> 8);
    payload[3] = (uint8_t) id;
  }
}
