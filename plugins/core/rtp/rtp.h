// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The fixed part of RTP (RFC 3550, section 5.1): reading a header, patching one in place, and
// counting past the wrap of sequence numbers and timestamps.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_RTP_HEADER 12
// The longest header up to and with the length field of a header extension: enough to parse from.
#define WEIR_RTP_HEADER_MAX (WEIR_RTP_HEADER + 15 * 4 + 4)

typedef struct {
  uint8_t pt;
  bool marker;
  uint16_t seq;
  uint32_t timestamp;
  uint32_t ssrc;
  uint8_t n_csrc;
  // The header extension's body, without its own four bytes. Its length is 0 where there is none.
  size_t extension_offset;
  size_t extension_length;
  uint16_t extension_profile;
  size_t payload_offset;
  size_t payload_length; // without the padding
  size_t padding;
} WeirRtp;

// Returns 0, or -EBADMSG for what is not RTP version 2 or does not add up; then `out` is untouched.
int weir_rtp_parse (const uint8_t *data, size_t len, WeirRtp *out);

// The same for a packet which does not lie in one piece: `head` holds its first
// min (total, WEIR_RTP_HEADER_MAX) bytes, `last` its last byte (the padding count, if there is
// one).
int weir_rtp_parse_head (
    const uint8_t *head, size_t head_len, size_t total, uint8_t last, WeirRtp *out);

// Whether a packet that begins so says that its last byte counts padding.
bool weir_rtp_is_padded (const uint8_t *head, size_t len);

// True for RTCP by RFC 5761, section 4: version 2 and a packet type of 192 to 223.
bool weir_rtp_is_rtcp (const uint8_t *data, size_t len);

// In place, for a packet that weir_rtp_parse() took.
void weir_rtp_set_seq (uint8_t *packet, uint16_t seq);
void weir_rtp_set_timestamp (uint8_t *packet, uint32_t timestamp);
void weir_rtp_set_ssrc (uint8_t *packet, uint32_t ssrc);
void weir_rtp_set_pt (uint8_t *packet, uint8_t pt);

// Unwrapping. `last` starts as WEIR_UNWRAP_START and holds the last value given. A new value is
// taken as the one nearest to the last: ahead of it by up to half of the range, or behind it (a
// reordered packet). Values may be negative where a packet from before the first one comes late.
#define WEIR_UNWRAP_START INT64_MIN
int64_t weir_unwrap16 (int64_t *last, uint16_t value);
int64_t weir_unwrap32 (int64_t *last, uint32_t value);
