// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads RTCP sender reports (RFC 3550, section 6.4.1): the mapping between an RTP clock and NTP
// time, by which a player synchronises sound and picture.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  bool known;
  uint64_t ntp;       // 32.32 seconds since 1900
  uint32_t timestamp; // RTP timestamp of the same instant, in ticks
  uint32_t ssrc;
} WeirNtpMap;

// Finds the first sender report in a compound packet. Returns 0; -ENOENT if there is none; -EBADMSG
// for invalid RTCP. On error `map` is unchanged.
int weir_rtcp_find_sr (const uint8_t *packet, size_t len, WeirNtpMap *map);

// The same for the first one of an SSRC: who sends several streams may report on all in one packet.
int weir_rtcp_find_sr_of (const uint8_t *packet, size_t len, uint32_t ssrc, WeirNtpMap *map);

// Returns the NTP time that `map`, which must be known, gives to an RTP timestamp within 2^31 ticks
// of its own. `clock_rate` is in Hz (0 means 90000).
uint64_t weir_ntp_at (const WeirNtpMap *map, uint32_t timestamp, uint32_t clock_rate);

// Converts a Unix time in ns to NTP time in 32.32 seconds since 1900, and back. An NTP time before
// 1970 is one of the era from 2036 on.
uint64_t weir_ntp_from_unix (int64_t unix_ns);
int64_t weir_ntp_to_unix (uint64_t ntp);

// Returns an NTP time minus another one, in ns, if they are less than 68 years apart.
int64_t weir_ntp_minus (uint64_t ntp, uint64_t other);
