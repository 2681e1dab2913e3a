// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/split.h"

#include <string.h>

#include "bits/bytes.h"

#define FU_A 28 // RFC 6184
#define FU 49   // RFC 7798
#define START 0x80
#define END 0x40

static size_t
nal_header (const WeirSplit *self)
{
  return self->codec == WEIR_SPLIT_H264 ? 1 : 2;
}

// Reads the header of the NAL unit, or of its fragment. Returns false if it is neither.
static bool
read_header (WeirSplit *self, WeirBytes *payload)
{
  bool is_h264 = self->codec == WEIR_SPLIT_H264;
  uint8_t fragment;

  if (!weir_bytes_take (payload, nal_header (self), &self->nal))
    return false;
  self->type = is_h264 ? self->nal[0] & 31 : self->nal[0] >> 1 & 63;
  self->first = self->last = true;
  if (self->type != (is_h264 ? FU_A : FU))
    return is_h264 ? self->type > 0 && self->type < 24 : self->type < 48;
  if (!weir_bytes_u8 (payload, &fragment))
    return false;
  self->type = fragment & (is_h264 ? 31 : 63);
  self->first = fragment & START;
  self->last = fragment & END;
  return true;
}

size_t
weir_split_begin (
    WeirSplit *self, WeirSplitCodec codec, const uint8_t *packet, const WeirRtp *rtp, size_t max)
{
  WeirBytes payload = weir_bytes (packet + rtp->payload_offset, rtp->payload_length);
  size_t overhead, room, n;

  *self = (WeirSplit) { .codec = codec,
    .packet = packet,
    .header = rtp->payload_offset,
    .marker = rtp->marker,
    .seq = rtp->seq };
  overhead = self->header + nal_header (self) + 1;
  if (codec == WEIR_SPLIT_NONE || self->header + rtp->payload_length <= max || overhead >= max / 2
      || !read_header (self, &payload))
    return 0;
  room = max - overhead;
  self->left = weir_bytes_left (&payload);
  if (self->left == 0 || !weir_bytes_take (&payload, self->left, &self->at))
    return 0;
  n = (self->left + room - 1) / room;
  self->piece = (self->left + n - 1) / n;
  return (self->left + self->piece - 1) / self->piece;
}

size_t
weir_split_next (WeirSplit *self, uint8_t *out)
{
  size_t n = self->left < self->piece ? self->left : self->piece, nal = nal_header (self);
  uint8_t *at = out + self->header;
  bool ends;

  if (n == 0)
    return 0;
  self->left -= n;
  ends = self->left == 0;
  memcpy (out, self->packet, self->header);
  out[0] &= (uint8_t) ~0x20; // no padding
  weir_rtp_set_marker (out, ends && self->marker);
  weir_rtp_set_seq (out, self->seq++);
  memcpy (at, self->nal, nal);
  at[0] = self->codec == WEIR_SPLIT_H264 ? (uint8_t) ((at[0] & 0xe0) | FU_A)
                                         : (uint8_t) ((at[0] & 0x81) | FU << 1);
  at[nal] = (uint8_t) (self->type | (self->first ? START : 0) | (ends && self->last ? END : 0));
  self->first = false;
  memcpy (at + nal + 1, self->at, n);
  self->at += n;
  return self->header + nal + 1 + n;
}
