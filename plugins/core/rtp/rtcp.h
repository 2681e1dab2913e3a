// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Sender reports (RFC 3550, section 6.4.1): the mapping between an RTP clock and NTP time that lets
// a player put audio and video in step.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_RTCP_SENDER_INFO 20 // bytes of a sender report that a receiver report has not

typedef struct {
  bool known;
  uint64_t ntp;       // 32.32 seconds since 1900
  uint32_t timestamp; // RTP timestamp of the same instant
  uint32_t ssrc;
} WeirNtpMap;

// Finds the sender report in a compound packet. Returns 0, -ENOENT if there is none, or -EBADMSG
// for what is no RTCP; then `map` is untouched.
int weir_rtcp_find_sr (const uint8_t *packet, size_t len, WeirNtpMap *map);

// Writes into the sender report at the start of a compound packet the NTP time that `map` gives for
// the report's RTP timestamp; `clock_rate` in Hz. If the map isn't known the report is made a
// receiver report of the same blocks: no mapping is better than one that will jump.
// Returns the new length of the packet (`len` where it does not begin with a sender report).
size_t weir_rtcp_rewrite_sr (
    uint8_t *packet, size_t len, const WeirNtpMap *map, uint32_t clock_rate);

// NTP time 32.32 of a Unix time in ns.
uint64_t weir_ntp_from_unix (int64_t unix_ns);
