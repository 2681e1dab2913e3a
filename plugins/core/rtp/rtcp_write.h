// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Writes RTCP: a report with its sender's name (RFC 3550, sections 6.4 and 6.5), and requests for a
// keyframe, for lost packets and for a bit rate.

#include <stddef.h>
#include <stdint.h>

#include "rtp/rtcp.h"

typedef struct {
  uint32_t ssrc;         // the sender that the block is about
  uint8_t fraction_lost; // 1/256 units, since the last report
  int32_t lost;          // packets lost in all, signed 24 bits
  uint32_t highest_seq;  // with the number of wraps in the upper 16 bits
  uint32_t jitter;       // ticks
  uint32_t last_sr;      // the middle 32 bits of the last sender report's NTP time, or 0
  uint32_t delay_sr;     // time from that sender report to this one, in 1/65536 s
} WeirRtcpBlock;

// Writes a compound packet: a receiver report from `ssrc` with `n` blocks, at most 31, and an SDES
// with `cname`, cut to 255 bytes. Returns the length in bytes, or 0 if `room` is too small.
size_t weir_rtcp_write_rr (uint8_t *out, size_t room, uint32_t ssrc, const WeirRtcpBlock *blocks,
    size_t n, const char *cname);

// Writes a compound packet: a sender report with the times and the SSRC of `at`, and an SDES with
// `cname`, cut to 255 bytes. `packets` and `octets` are the RTP packets and their payload bytes so
// far; they wrap. Returns the length in bytes, or 0 if `room` is too small.
size_t weir_rtcp_write_sr (uint8_t *out, size_t room, const WeirNtpMap *at, uint32_t packets,
    uint32_t octets, const char *cname);

// Writes that `ssrc` has ended (RFC 3550, section 6.6); append it to a report. Returns the length
// in bytes, or 0 if `room` is too small.
size_t weir_rtcp_write_bye (uint8_t *out, size_t room, uint32_t ssrc);

// Writes a picture loss indication from `ssrc` about the stream `media` (RFC 4585, section 6.3.1);
// append it to a report. Returns the length in bytes, or 0 if `room` is too small.
size_t weir_rtcp_write_pli (uint8_t *out, size_t room, uint32_t ssrc, uint32_t media);

// Writes a full intra request from `ssrc` for the stream `media` (RFC 5104, section 4.3.1); it goes
// behind a report. `seq` rises with each new request. Returns the length in bytes, or 0 if `room`
// is too small.
size_t weir_rtcp_write_fir (uint8_t *out, size_t room, uint32_t ssrc, uint32_t media, uint8_t seq);

// Writes a request from `ssrc` for the packets of the stream `media` that have the numbers `seqs`
// (generic NACK, RFC 4585, section 6.2.1); append it to a report. The numbers ascend. Sets `*n`,
// which is how many there are, to how many have room. Returns the length in bytes, or 0 if `*n` is.
size_t weir_rtcp_write_nack (
    uint8_t *out, size_t room, uint32_t ssrc, uint32_t media, const uint16_t *seqs, size_t *n);

// Writes the bit rate, in bit/s, that `ssrc` allows to the sender of the `n` streams `medias`, at
// most 255 (REMB, draft-alvestrand-rmcat-remb-03); append it to a report. The rate is rounded down
// to 18 bits. Returns the length in bytes, or 0 if `room` is too small.
size_t weir_rtcp_write_remb (
    uint8_t *out, size_t room, uint32_t ssrc, uint64_t rate, const uint32_t *medias, size_t n);
