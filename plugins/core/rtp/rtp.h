// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads and patches RTP headers (RFC 3550, section 5.1), and unwraps sequence numbers and
// timestamps.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_RTP_HEADER 12
// The longest header up to and including the length field of a header extension:
// weir_rtp_parse_head() needs no more of a packet.
#define WEIR_RTP_HEADER_MAX (WEIR_RTP_HEADER + 15 * 4 + 4)

typedef struct {
  uint8_t pt;
  bool marker;
  uint16_t seq;
  uint32_t timestamp;
  uint32_t ssrc;
  uint8_t n_csrc;
  // The header extension without its own four-byte header. The length is 0 if there is none.
  size_t extension_offset;
  size_t extension_length;
  uint16_t extension_profile;
  size_t payload_offset;
  size_t payload_length; // without the padding
  size_t padding;        // bytes, the count byte included
} WeirRtp;

// Parses a packet of `len` bytes. Returns 0, or -EBADMSG if it is not RTP version 2 or a length is
// beyond its end; then `out` is unchanged.
int weir_rtp_parse (const uint8_t *data, size_t len, WeirRtp *out);

// Parses a packet whose bytes are not contiguous: `head` holds its first min (`total`,
// WEIR_RTP_HEADER_MAX) bytes, `total` is its length, and `last` is its last byte (the padding
// count, if the packet is padded).
int weir_rtp_parse_head (
    const uint8_t *head, size_t head_len, size_t total, uint8_t last, WeirRtp *out);

// Reports whether a packet that begins with `head` is padded, so that its last byte is a count.
bool weir_rtp_is_padded (const uint8_t *head, size_t len);

// Reports whether a packet is RTCP by RFC 5761, section 4: version 2 and a packet type from 192 to
// 223.
bool weir_rtp_is_rtcp (const uint8_t *data, size_t len);

// Read and patch fields in place. The packet must have passed weir_rtp_parse().
uint16_t weir_rtp_get_seq (const uint8_t *packet);
uint32_t weir_rtp_get_timestamp (const uint8_t *packet);
uint32_t weir_rtp_get_ssrc (const uint8_t *packet);
void weir_rtp_set_seq (uint8_t *packet, uint16_t seq);
void weir_rtp_set_timestamp (uint8_t *packet, uint32_t timestamp);
void weir_rtp_set_ssrc (uint8_t *packet, uint32_t ssrc);
void weir_rtp_set_pt (uint8_t *packet, uint8_t pt);
void weir_rtp_set_marker (uint8_t *packet, bool marker);

// Unwrap a 16-bit or 32-bit counter. Initialise `last` with WEIR_UNWRAP_START; it holds the last
// value returned. A value is taken as the one nearest to `last`: up to half of the range ahead of
// it, or behind it (a reordered packet). The result is negative for a packet from before the first
// one.
#define WEIR_UNWRAP_START INT64_MIN
int64_t weir_unwrap16 (int64_t *last, uint16_t value);
int64_t weir_unwrap32 (int64_t *last, uint32_t value);
