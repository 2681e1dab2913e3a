// SPDX-License-Identifier: LGPL-2.1-or-later
#include "codec/mpv.h"

#include "bits/bytes.h"

enum { PICTURE_CODING_EXTENSION = 8 };

// Moves `b` past the start code and returns its last byte, or -1.
static int
read_code (WeirBytes *b)
{
  uint32_t start;

  if (!weir_bytes_u32 (b, &start) || start >> 8 != 1)
    return -1;
  return (int) (start & 0xff);
}

int
weir_mpv_code (const uint8_t *unit, size_t len)
{
  WeirBytes b = weir_bytes (unit, len);

  return read_code (&b);
}

bool
weir_mpv_read_picture (const uint8_t *unit, size_t len, WeirMpvPicture *out)
{
  WeirBytes b = weir_bytes (unit, len);
  uint32_t bits;
  uint8_t more = 0;

  *out = (WeirMpvPicture) { 0 };
  if (read_code (&b) != WEIR_MPV_PICTURE || !weir_bytes_u32 (&b, &bits))
    return false;
  out->temporal_reference = (uint16_t) (bits >> 22);
  out->type = bits >> 19 & 7;
  if (out->type < WEIR_MPV_I || out->type > WEIR_MPV_D)
    return false;
  if (out->type != WEIR_MPV_P && out->type != WEIR_MPV_B)
    return true;
  if (!weir_bytes_u8 (&b, &more))
    return false;
  out->full_pel_forward = bits >> 2 & 1;
  out->forward_f_code = (uint8_t) ((bits & 3) << 1 | more >> 7);
  if (out->type == WEIR_MPV_B) {
    out->full_pel_backward = more >> 6 & 1;
    out->backward_f_code = more >> 3 & 7;
  }
  return true;
}

bool
weir_mpv_read_coding (const uint8_t *unit, size_t len, uint32_t *out)
{
  WeirBytes b = weir_bytes (unit, len);
  uint64_t bits;

  *out = 0;
  if (read_code (&b) != WEIR_MPV_EXTENSION || !weir_bytes_number (&b, 5, &bits)
      || bits >> 36 != PICTURE_CODING_EXTENSION)
    return false;
  *out = (uint32_t) (bits >> 6 & 0x3fffffff);
  return true;
}
