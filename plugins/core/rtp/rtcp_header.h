// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Takes an RTCP compound apart into its packets (RFC 3550, section 6.1).

#include "bits/bytes.h"

#define WEIR_RTCP_SR 200
#define WEIR_RTCP_RR 201
#define WEIR_RTCP_SDES 202
#define WEIR_RTCP_BYE 203
#define WEIR_RTCP_APP 204
#define WEIR_RTCP_RTPFB 205
#define WEIR_RTCP_PSFB 206
#define WEIR_RTCP_XR 207

#define WEIR_RTCP_PADDED 0x20 // in the flags
#define WEIR_RTCP_COUNT 0x1f

typedef struct {
  uint8_t flags; // version, padding bit, and a count whose meaning depends on the type
  uint8_t type;
  size_t size; // bytes, header included
} WeirRtcpHeader;

// Reads a header and leaves `bytes` behind it. Returns false if the header is cut short, is not
// version 2, or announces more bytes than are left.
static inline bool
weir_rtcp_header_read (WeirBytes *bytes, WeirRtcpHeader *header)
{
  uint16_t words = 0;

  weir_bytes_u8 (bytes, &header->flags);
  weir_bytes_u8 (bytes, &header->type);
  if (!weir_bytes_u16 (bytes, &words) || header->flags >> 6 != 2)
    return false;
  header->size = 4 * ((size_t) words + 1);
  return header->size - 4 <= weir_bytes_left (bytes);
}

// Removes the padding of a packet; its last byte holds its length. That is a multiple of four, but
// browsers pad transport feedback with one to three bytes. Returns false if it is wrong.
static inline bool
weir_rtcp_padding_strip (WeirBytes *body, const WeirRtcpHeader *header)
{
  size_t len = weir_bytes_left (body);
  WeirBytes end = *body;
  uint8_t padding = 0;

  if (!(header->flags & WEIR_RTCP_PADDED))
    return true;
  if (len == 0 || !weir_bytes_skip (&end, len - 1))
    return false;
  weir_bytes_u8 (&end, &padding);
  if (padding == 0 || padding > len || (padding % 4 != 0 && header->type != WEIR_RTCP_RTPFB))
    return false;
  body->end -= padding;
  return true;
}

// Takes the next packet of a compound: its header, and what follows, without padding. Returns false
// at the end, or if the packet is malformed.
static inline bool
weir_rtcp_packet_next (WeirBytes *compound, WeirRtcpHeader *header, WeirBytes *body)
{
  const uint8_t *at;

  if (weir_bytes_left (compound) == 0 || !weir_rtcp_header_read (compound, header)
      || !weir_bytes_take (compound, header->size - 4, &at))
    return false;
  *body = weir_bytes (at, header->size - 4);
  return weir_rtcp_padding_strip (body, header);
}
