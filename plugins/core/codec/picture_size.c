// SPDX-License-Identifier: LGPL-2.1-or-later
#include "codec/picture_size.h"

#include "bits/bytes.h"
#include "codec/h264.h"
#include "codec/layers_private.h"
#include "codec/sps.h"

#define VP8_START 0x9d012a // behind the three bytes of a frame's tag

static uint64_t
read_sps (const uint8_t *unit, size_t len)
{
  WeirSps sps;

  if (len == 0 || (unit[0] & 31) != WEIR_H264_SPS || weir_sps_read (unit, len, &sps) < 0)
    return 0;
  return (uint64_t) sps.width * sps.height;
}

static uint64_t
read_h264 (const uint8_t *payload, size_t len)
{
  WeirBytes b = weir_bytes (payload, len);
  const uint8_t *unit;
  uint64_t pixels = 0;
  uint8_t header;
  uint16_t size;

  if (!weir_bytes_u8 (&b, &header) || (header & 31) != WEIR_H264_STAP_A)
    return read_sps (payload, len);
  while (pixels == 0 && weir_bytes_u16 (&b, &size) && weir_bytes_take (&b, size, &unit))
    pixels = read_sps (unit, size);
  return pixels;
}

// A number of 14 bits, the low byte first; the other two bits ask for a larger picture.
static uint64_t
read_length (WeirBytes *b)
{
  uint8_t low, high;

  weir_bytes_u8 (b, &low);
  weir_bytes_u8 (b, &high);
  return (uint64_t) (high & 0x3f) << 8 | low;
}

static uint64_t
read_vp8 (const uint8_t *payload, size_t len)
{
  WeirLayers reader = { .codec = WEIR_CODEC_VP8 };
  WeirBytes b = weir_bytes (payload, len);
  uint64_t width, height;
  WeirLayer layer;
  uint32_t start;

  if (!weir_layers_read (&reader, payload, len, &layer) || !layer.keyframe)
    return 0;
  weir_bytes_skip (&b, weir_vp8_data_at (payload, len) + 3);
  weir_bytes_u24 (&b, &start);
  width = read_length (&b);
  height = read_length (&b);
  return !b.failed && start == VP8_START ? width * height : 0;
}

uint64_t
weir_picture_pixels (WeirCodec codec, const uint8_t *payload, size_t len)
{
  switch (codec) {
    case WEIR_CODEC_H264:
      return read_h264 (payload, len);
    case WEIR_CODEC_VP8:
      return read_vp8 (payload, len);
    default:
      return 0;
  }
}
