// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Writes what a receiver says: a receiver report and its name (RFC 3550, sections 6.4.2 and 6.5),
// and that it needs a keyframe.

#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint32_t ssrc;         // of the sender
  uint8_t fraction_lost; // of 256, since the last report
  int32_t lost;          // in all; 24 bits
  uint32_t highest_seq;
  uint32_t jitter;   // ticks
  uint32_t last_sr;  // the middle 32 bits of the last sender report's NTP time, or 0
  uint32_t delay_sr; // since then, in 1/65536 s
} WeirRtcpBlock;

// A compound packet: a report from `ssrc` with one block, or none where `block` is NULL, and an
// SDES with `cname`, of which 255 bytes are taken at most. Returns its length, or 0 if `room` is
// too small.
size_t weir_rtcp_write_rr (
    uint8_t *out, size_t room, uint32_t ssrc, const WeirRtcpBlock *block, const char *cname);

// A picture loss indication from `ssrc` about the stream `media`, to go behind a report (RFC 4585,
// section 6.3.1). Returns its length, or 0 if `room` is too small.
size_t weir_rtcp_write_pli (uint8_t *out, size_t room, uint32_t ssrc, uint32_t media);
