// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/rtcp.h"

#include <errno.h>
#include <string.h>

#include "rtp/rtcp_header.h"

#define SR_HEADER 28 // header, SSRC and sender info
#define UNIX_EPOCH_IN_NTP UINT64_C (2208988800)

int
weir_rtcp_find_sr (const uint8_t *packet, size_t len, WeirNtpMap *map)
{
  WeirBytes bytes = weir_bytes (packet, len);

  if (len == 0)
    return -EBADMSG;
  while (weir_bytes_left (&bytes) > 0) {
    WeirRtcpHeader header;
    const uint8_t *body;

    if (!weir_rtcp_header_read (&bytes, &header)
        || !weir_bytes_take (&bytes, header.size - 4, &body))
      return -EBADMSG;
    if (header.type == WEIR_RTCP_SR) {
      WeirBytes sr = weir_bytes (body, header.size - 4);
      WeirNtpMap found = { .known = true };

      weir_bytes_u32 (&sr, &found.ssrc);
      weir_bytes_u64 (&sr, &found.ntp);
      if (!weir_bytes_u32 (&sr, &found.timestamp))
        return -EBADMSG;
      *map = found;
      return 0;
    }
  }
  return -ENOENT;
}

static void
write_number (uint8_t *at, uint64_t value, int size)
{
  while (size-- > 0) {
    at[size] = (uint8_t) value;
    value >>= 8;
  }
}

// Converts ticks to NTP's 32.32 seconds.
static int64_t
ticks_to_ntp (int32_t ticks, uint32_t clock_rate)
{
  int64_t rate = clock_rate ? clock_rate : 90000;

  return ((int64_t) ticks * (INT64_C (1) << 32)) / rate;
}

size_t
weir_rtcp_rewrite_sr (uint8_t *packet, size_t len, const WeirNtpMap *map, uint32_t clock_rate)
{
  WeirBytes bytes = weir_bytes (packet, len);
  WeirRtcpHeader header;
  uint32_t ssrc, timestamp;
  uint64_t ntp;

  if (!weir_rtcp_header_read (&bytes, &header) || header.type != WEIR_RTCP_SR
      || header.size < SR_HEADER)
    return len;

  if (!map->known) {
    packet[1] = WEIR_RTCP_RR;
    write_number (packet + 2, (header.size - WEIR_RTCP_SENDER_INFO) / 4 - 1, 2);
    memmove (packet + 8, packet + 8 + WEIR_RTCP_SENDER_INFO, len - 8 - WEIR_RTCP_SENDER_INFO);
    return len - WEIR_RTCP_SENDER_INFO;
  }

  weir_bytes_u32 (&bytes, &ssrc);
  weir_bytes_u64 (&bytes, &ntp);
  weir_bytes_u32 (&bytes, &timestamp);
  ntp = map->ntp + (uint64_t) ticks_to_ntp ((int32_t) (timestamp - map->timestamp), clock_rate);
  write_number (packet + 8, ntp, 8);
  return len;
}

uint64_t
weir_ntp_from_unix (int64_t unix_ns)
{
  uint64_t seconds = (uint64_t) (unix_ns / 1000000000);
  uint64_t rest = (uint64_t) (unix_ns % 1000000000);

  return (seconds + UNIX_EPOCH_IN_NTP) << 32 | (rest << 32) / 1000000000;
}
