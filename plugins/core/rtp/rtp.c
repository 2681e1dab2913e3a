// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/rtp.h"

#include <errno.h>

#include "bits/bytes.h"

int
weir_rtp_parse_head (const uint8_t *head, size_t head_len, size_t total, uint8_t last, WeirRtp *out)
{
  WeirBytes b = weir_bytes (head, head_len < total ? head_len : total);
  WeirRtp rtp = { 0 };
  uint8_t first, second;
  size_t header = WEIR_RTP_HEADER;

  weir_bytes_u8 (&b, &first);
  weir_bytes_u8 (&b, &second);
  weir_bytes_u16 (&b, &rtp.seq);
  weir_bytes_u32 (&b, &rtp.timestamp);
  weir_bytes_u32 (&b, &rtp.ssrc);
  if (b.failed || first >> 6 != 2)
    return -EBADMSG;

  rtp.marker = second >> 7;
  rtp.pt = second & 0x7f;
  rtp.n_csrc = first & 0x0f;
  if (!weir_bytes_skip (&b, rtp.n_csrc * 4))
    return -EBADMSG;
  header += rtp.n_csrc * 4;

  if (first & 0x10) {
    uint16_t words;

    weir_bytes_u16 (&b, &rtp.extension_profile);
    if (!weir_bytes_u16 (&b, &words))
      return -EBADMSG;
    header += 4;
    rtp.extension_offset = header;
    rtp.extension_length = (size_t) words * 4;
    if (rtp.extension_length > total - header)
      return -EBADMSG;
    header += rtp.extension_length;
  }

  if (first & 0x20) {
    rtp.padding = last;
    if (rtp.padding == 0 || rtp.padding > total - header)
      return -EBADMSG;
  }

  rtp.payload_offset = header;
  rtp.payload_length = total - header - rtp.padding;
  *out = rtp;
  return 0;
}

int
weir_rtp_parse (const uint8_t *data, size_t len, WeirRtp *out)
{
  if (len < WEIR_RTP_HEADER)
    return -EBADMSG;
  return weir_rtp_parse_head (data, len, len, data[len - 1], out);
}

bool
weir_rtp_is_padded (const uint8_t *head, size_t len)
{
  return len > 0 && head[0] & 0x20;
}

bool
weir_rtp_is_rtcp (const uint8_t *data, size_t len)
{
  return len >= 2 && data[0] >> 6 == 2 && data[1] >= 192 && data[1] <= 223;
}

uint16_t
weir_rtp_get_seq (const uint8_t *packet)
{
  return (uint16_t) (packet[2] << 8 | packet[3]);
}

static uint32_t
get_u32 (const uint8_t *at)
{
  return (uint32_t) at[0] << 24 | (uint32_t) at[1] << 16 | (uint32_t) at[2] << 8 | at[3];
}

uint32_t
weir_rtp_get_timestamp (const uint8_t *packet)
{
  return get_u32 (packet + 4);
}

uint32_t
weir_rtp_get_ssrc (const uint8_t *packet)
{
  return get_u32 (packet + 8);
}

void
weir_rtp_set_seq (uint8_t *packet, uint16_t seq)
{
  packet[2] = (uint8_t) (seq >> 8);
  packet[3] = (uint8_t) seq;
}

static void
put_u32 (uint8_t *at, uint32_t value)
{
  at[0] = (uint8_t) (value >> 24);
  at[1] = (uint8_t) (value >> 16);
  at[2] = (uint8_t) (value >> 8);
  at[3] = (uint8_t) value;
}

void
weir_rtp_set_timestamp (uint8_t *packet, uint32_t timestamp)
{
  put_u32 (packet + 4, timestamp);
}

void
weir_rtp_set_ssrc (uint8_t *packet, uint32_t ssrc)
{
  put_u32 (packet + 8, ssrc);
}

void
weir_rtp_set_pt (uint8_t *packet, uint8_t pt)
{
  packet[1] = (uint8_t) ((packet[1] & 0x80) | (pt & 0x7f));
}

void
weir_rtp_set_marker (uint8_t *packet, bool marker)
{
  packet[1] = (uint8_t) ((packet[1] & 0x7f) | (marker ? 0x80 : 0));
}

int64_t
weir_unwrap16 (int64_t *last, uint16_t value)
{
  if (*last == WEIR_UNWRAP_START)
    *last = value;
  else
    *last += (int16_t) (uint16_t) (value - (uint16_t) *last);
  return *last;
}

int64_t
weir_unwrap32 (int64_t *last, uint32_t value)
{
  if (*last == WEIR_UNWRAP_START)
    *last = value;
  else
    *last += (int32_t) (value - (uint32_t) *last);
  return *last;
}
