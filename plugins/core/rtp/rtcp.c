// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/rtcp.h"

#include <errno.h>

#include "rtp/rtcp_header.h"

#define UNIX_EPOCH_IN_NTP UINT64_C (2208988800)

// Finds the first sender report, or with `of` the first of that SSRC.
static int
find_sr (const uint8_t *packet, size_t len, const uint32_t *of, WeirNtpMap *map)
{
  WeirBytes bytes = weir_bytes (packet, len);

  if (len == 0)
    return -EBADMSG;
  while (weir_bytes_left (&bytes) > 0) {
    WeirRtcpHeader header;
    const uint8_t *body;
    WeirNtpMap found = { .known = true };
    WeirBytes sr;

    if (!weir_rtcp_header_read (&bytes, &header)
        || !weir_bytes_take (&bytes, header.size - 4, &body))
      return -EBADMSG;
    if (header.type != WEIR_RTCP_SR)
      continue;
    sr = weir_bytes (body, header.size - 4);
    weir_bytes_u32 (&sr, &found.ssrc);
    weir_bytes_u64 (&sr, &found.ntp);
    if (!weir_bytes_u32 (&sr, &found.timestamp))
      return -EBADMSG;
    if (of && found.ssrc != *of)
      continue;
    *map = found;
    return 0;
  }
  return -ENOENT;
}

int
weir_rtcp_find_sr (const uint8_t *packet, size_t len, WeirNtpMap *map)
{
  return find_sr (packet, len, NULL, map);
}

int
weir_rtcp_find_sr_of (const uint8_t *packet, size_t len, uint32_t ssrc, WeirNtpMap *map)
{
  return find_sr (packet, len, &ssrc, map);
}

uint64_t
weir_ntp_at (const WeirNtpMap *map, uint32_t timestamp, uint32_t clock_rate)
{
  int64_t rate = clock_rate ? clock_rate : 90000;
  int64_t ticks = (int32_t) (timestamp - map->timestamp);

  return map->ntp + (uint64_t) (ticks * (INT64_C (1) << 32) / rate);
}

uint64_t
weir_ntp_from_unix (int64_t unix_ns)
{
  uint64_t seconds = (uint64_t) (unix_ns / 1000000000);
  uint64_t rest = (uint64_t) (unix_ns % 1000000000);

  return (seconds + UNIX_EPOCH_IN_NTP) << 32 | (rest << 32) / 1000000000;
}

int64_t
weir_ntp_to_unix (uint64_t ntp)
{
  int64_t seconds = (int64_t) (ntp >> 32) - (int64_t) UNIX_EPOCH_IN_NTP;

  if (seconds < 0)
    seconds += INT64_C (1) << 32;
  return seconds * 1000000000 + (int64_t) ((ntp & UINT32_MAX) * 1000000000 >> 32);
}

int64_t
weir_ntp_minus (uint64_t ntp, uint64_t other)
{
  uint64_t difference = ntp - other;

  return (int64_t) (int32_t) (difference >> 32) * 1000000000
         + (int64_t) ((difference & UINT32_MAX) * 1000000000 >> 32);
}
