// SPDX-License-Identifier: LGPL-2.1-or-later
#include "svc/au.h"

#include "bits/bytes.h"
#include "bits/leb128.h"
#include "bits/startcode.h"

#include <errno.h>
#include <string.h>

static WeirAuPart *
add_part (WeirAu *self, const uint8_t *data, size_t len)
{
  WeirAuPart *part;

  if (self->n == WEIR_AU_PARTS)
    return NULL;
  part = &self->parts[self->n++];
  *part = (WeirAuPart) { .data = data, .len = len };
  return part;
}

// ---- H.265 ----

// A NAL unit is also a valid RTP payload by itself, so the payload reader can read it.
static void
add_h265_unit (WeirLayers *reader, const uint8_t *unit, size_t len, WeirPicture *picture)
{
  const uint8_t vcl_end = 32;
  WeirLayer layer;

  if (len > 2 && (unit[0] >> 1 & 63) < vcl_end && weir_layers_read (reader, unit, len, &layer))
    weir_picture_add (picture, &layer);
}

static int
read_h265 (WeirAu *self, const uint8_t *data, size_t len, unsigned length_size)
{
  WeirLayers reader = { WEIR_CODEC_H265 };
  WeirBytes b = weir_bytes (data, len);
  const uint8_t *unit;
  uint64_t size;

  add_part (self, data, len)->frame = true;
  if (length_size == 0) {
    while (weir_start_code_next (&b, &unit, &size))
      add_h265_unit (&reader, unit, size, &self->picture);
    return 0;
  }
  while (weir_bytes_left (&b) > 0) {
    if (!weir_bytes_number (&b, length_size, &size) || !weir_bytes_take (&b, size, &unit))
      return -EBADMSG;
    add_h265_unit (&reader, unit, size, &self->picture);
  }
  return 0;
}

// ---- VP9 ----

// Reads the superframe index at the end (VP9 bitstream specification, annex B). Returns the number
// of frames, or 0 if there is no index.
static int
read_superframe_index (const uint8_t *data, size_t len, uint64_t sizes[8])
{
  uint8_t marker = data[len - 1];
  unsigned n = (marker & 7) + 1u, bytes = (marker >> 3 & 3) + 1u;
  size_t index = 2 + n * bytes;
  WeirBytes b;

  if ((marker & 0xe0) != 0xc0 || len < index || data[len - index] != marker)
    return 0;
  b = weir_bytes (data + len - index + 1, n * bytes);
  for (unsigned i = 0; i < n; i++) {
    const uint8_t *size;

    weir_bytes_take (&b, bytes, &size);
    sizes[i] = 0;
    for (unsigned j = bytes; j-- > 0;)
      sizes[i] = sizes[i] << 8 | size[j];
  }
  return (int) n;
}

// Reads the first byte of a VP9 frame: marker, profile, show_existing_frame, frame_type,
// show_frame.
static void
read_vp9_frame (uint8_t first, bool *key, bool *shown)
{
  unsigned profile = (first >> 5 & 1) | (first >> 3 & 2);
  unsigned shift = profile == 3 ? 2 : 3; // position of show_existing_frame

  *shown = true;
  *key = false;
  if (first >> shift & 1)
    return;
  *key = !(first >> (shift - 1) & 1);
  *shown = first >> (shift - 2) & 1;
}

// Every shown frame of a superframe is a spatial layer. A hidden frame (an alternate reference)
// belongs to all layers.
static int
read_vp9 (WeirAu *self, const uint8_t *data, size_t len)
{
  WeirBytes b = weir_bytes (data, len);
  uint64_t sizes[8] = { len };
  uint8_t spatial = 0;
  bool key, shown, is_key = false;
  int n = read_superframe_index (data, len, sizes);

  for (int i = 0; i < (n > 0 ? n : 1); i++) {
    const uint8_t *frame;
    WeirAuPart *part;

    if (sizes[i] == 0 || !weir_bytes_take (&b, sizes[i], &frame))
      return -EBADMSG;
    part = add_part (self, frame, sizes[i]);
    read_vp9_frame (frame[0], &key, &shown);
    is_key |= i == 0 && key;
    part->layered = shown;
    part->frame = true;
    part->spatial = spatial;
    if (shown)
      weir_picture_add (&self->picture,
          &(WeirLayer) { .spatial = spatial++, .enter = is_key, .switch_up = true });
  }
  self->picture.any = true;
  return 0;
}

static size_t
write_superframe_index (const WeirAu *self, WeirLayerSet now, uint8_t *out)
{
  const unsigned bytes = 4;
  unsigned n = 0;
  uint8_t *at = out + 1;

  for (size_t i = 0; i < self->n; i++) {
    const WeirAuPart *part = &self->parts[i];

    if (part->layered && !weir_layer_set_has (now, part->spatial, 0, part->temporal))
      continue;
    for (unsigned j = 0; j < bytes; j++)
      *at++ = (uint8_t) (part->len >> 8 * j);
    n++;
  }
  if (n < 2)
    return 0;
  out[0] = *at++ = (uint8_t) (0xc0 | (bytes - 1) << 3 | (n - 1));
  return (size_t) (at - out);
}

// ---- AV1 ----

enum {
  OBU_SEQUENCE_HEADER = 1,
  OBU_TEMPORAL_DELIMITER = 2,
  OBU_FRAME_HEADER = 3,
  OBU_FRAME = 6,
};

static int
read_obu (WeirAu *self, WeirBytes *b, bool *is_key)
{
  const uint8_t *start = b->at, *body;
  uint8_t header = 0, extension = 0, type;
  uint64_t size;
  WeirAuPart *part;

  weir_bytes_u8 (b, &header);
  type = header >> 3 & 15;
  if (header & 4)
    weir_bytes_u8 (b, &extension);
  size = weir_bytes_left (b);
  if (header & 2 && !weir_leb128 (b, &size))
    return -EBADMSG;
  if (!weir_bytes_take (b, size, &body))
    return -EBADMSG;
  part = add_part (self, start, (size_t) (b->at - start));
  if (!part)
    return -E2BIG;
  part->layered = header & 4 && type != OBU_SEQUENCE_HEADER && type != OBU_TEMPORAL_DELIMITER;
  part->temporal = extension >> 5;
  part->spatial = extension >> 3 & 3;
  if (type != OBU_FRAME_HEADER && type != OBU_FRAME)
    return 0;
  part->frame = true;
  // show_existing_frame is 0 and frame_type is KEY_FRAME: the rest of the unit needs no other unit.
  if (part->spatial == 0 && size > 0 && body[0] >> 5 == 0)
    *is_key = true;
  weir_picture_add (&self->picture, &(WeirLayer) { .spatial = part->spatial,
                                        .temporal = part->temporal,
                                        .enter = *is_key,
                                        .switch_up = part->temporal == 0 });
  return 0;
}

static int
read_av1 (WeirAu *self, const uint8_t *data, size_t len)
{
  WeirBytes b = weir_bytes (data, len);
  bool is_key = false;
  int r = 0;

  while (r == 0 && weir_bytes_left (&b) > 0)
    r = read_obu (self, &b, &is_key);
  return r;
}

// ---- all ----

int
weir_au_read (WeirAu *self, WeirCodec codec, const uint8_t *data, size_t len, unsigned length_size)
{
  self->codec = codec;
  self->n = 0;
  self->picture = (WeirPicture) { 0 };
  if (len == 0)
    return -EBADMSG;
  switch (codec) {
    case WEIR_CODEC_H265:
      return read_h265 (self, data, len, length_size);
    case WEIR_CODEC_VP9:
      return read_vp9 (self, data, len);
    case WEIR_CODEC_AV1:
      return read_av1 (self, data, len);
    default: // no layers that can be recognised without decoding
      add_part (self, data, len)->frame = true;
      return 0;
  }
}

size_t
weir_au_write (const WeirAu *self, WeirLayerSet now, uint8_t *out)
{
  bool any = false;
  size_t at = 0;

  for (size_t i = 0; i < self->n; i++) {
    const WeirAuPart *part = &self->parts[i];

    if (part->layered && !weir_layer_set_has (now, part->spatial, 0, part->temporal))
      continue;
    any |= part->frame;
    memcpy (out + at, part->data, part->len);
    at += part->len;
  }
  if (any && self->codec == WEIR_CODEC_VP9)
    at += write_superframe_index (self, now, out + at);
  return any ? at : 0;
}
