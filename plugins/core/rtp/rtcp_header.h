// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the header that every packet of an RTCP compound begins with (RFC 3550, section 6.1).

#include "bits/bytes.h"

#define WEIR_RTCP_SR 200
#define WEIR_RTCP_RR 201
#define WEIR_RTCP_SDES 202
#define WEIR_RTCP_BYE 203
#define WEIR_RTCP_APP 204
#define WEIR_RTCP_RTPFB 205
#define WEIR_RTCP_PSFB 206
#define WEIR_RTCP_XR 207

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
