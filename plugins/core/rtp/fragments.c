// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/fragments.h"

#include <string.h>

#define MARKER 0x80 // of the second byte of RTP
#define START 0x80  // of a fragment's header
#define END 0x40
#define H264_TYPES_MAX 23 // larger ones are RTP's own
#define H265_TYPES_MAX 47
#define H264_FU_A 28
#define H265_FU 49

static unsigned
get_type (const WeirFragments *self)
{
  const uint8_t first = self->head[self->header];

  return self->codec == WEIR_FRAGMENTS_H264 ? first & 0x1f : first >> 1 & 0x3f;
}

bool
weir_fragments_begin (
    WeirFragments *self, const uint8_t *head, size_t len, unsigned codec, size_t mtu)
{
  const size_t n = len < WEIR_RTP_HEADER_MAX ? len : WEIR_RTP_HEADER_MAX;
  WeirRtp rtp;

  if (len <= mtu || weir_rtp_is_padded (head, n) || weir_rtp_parse_head (head, n, len, 0, &rtp) < 0
      || rtp.payload_offset > WEIR_RTP_HEADER_MAX || rtp.payload_length <= codec
      || mtu <= rtp.payload_offset + codec + 1)
    return false;
  *self = (WeirFragments) { head, len, rtp.payload_offset, rtp.payload_offset + codec,
    mtu - rtp.payload_offset - codec - 1, codec };
  return get_type (self) <= (codec == WEIR_FRAGMENTS_H264 ? H264_TYPES_MAX : H265_TYPES_MAX);
}

size_t
weir_fragments_next (WeirFragments *self, uint8_t *out, size_t *from, size_t *n)
{
  const uint8_t *unit = self->head + self->header;
  const size_t left = self->len - self->at;
  const bool first = self->at == self->header + self->codec;
  uint8_t *head = out + self->header;

  if (left == 0)
    return 0;
  *n = left < self->room ? left : self->room;
  *from = self->at;
  memcpy (out, self->head, self->header);
  if (*n < left)
    out[1] &= (uint8_t) ~MARKER;
  if (self->codec == WEIR_FRAGMENTS_H264) {
    *head++ = (uint8_t) ((unit[0] & 0xe0) | H264_FU_A);
  } else {
    *head++ = (uint8_t) ((unit[0] & 0x81) | H265_FU << 1);
    *head++ = unit[1];
  }
  *head++ = (uint8_t) (get_type (self) | (first ? START : 0) | (*n == left ? END : 0));
  self->at += *n;
  return (size_t) (head - out);
}
