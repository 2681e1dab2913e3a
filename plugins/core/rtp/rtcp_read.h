// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the RTCP that a receiver sends (RFC 3550, sections 6.4 to 6.6): reports, BYE, and requests
// for a keyframe or for lost packets.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rtp/rtcp.h"
#include "rtp/rtcp_write.h"

#define WEIR_RTCP_BLOCKS_MAX 31

typedef struct {
  uint32_t ssrc;   // the receiver that reports
  size_t n_blocks; // blocks beyond WEIR_RTCP_BLOCKS_MAX are left out
  WeirRtcpBlock blocks[WEIR_RTCP_BLOCKS_MAX];
  bool bye;  // the compound has a BYE
  bool more; // the compound has feedback or application-defined packets
} WeirRtcpReport;

// Reads a compound packet by the validity checks of RFC 3550, appendix A.2; each packet must be
// long enough for its counts. Returns 0; -ENOENT if it is valid but does not begin with a report
// (RFC 5506); -EBADMSG otherwise. On error `out` is unchanged.
int weir_rtcp_read (const uint8_t *packet, size_t len, WeirRtcpReport *out);

// Reports whether a compound packet, or a reduced-size one (RFC 5506), asks for a keyframe of the
// stream `ssrc`: by PLI (RFC 4585, section 6.3.1) or FIR (RFC 5104, section 4.3.1). An invalid
// packet asks for nothing.
bool weir_rtcp_asks_key (const uint8_t *packet, size_t len, uint32_t ssrc);

// Reads the sequence numbers that a compound packet, or a reduced-size one, says are missing of the
// stream `ssrc` (generic NACK, RFC 4585, section 6.2.1), in its order and as often as it says them.
// Returns their number, at most `max`: more are left out. An invalid packet misses nothing.
size_t weir_rtcp_read_nacks (
    const uint8_t *packet, size_t len, uint32_t ssrc, uint16_t *seqs, size_t max);

// Reports whether a packet may be given to code that trusts its contents: it is valid as for
// weir_rtcp_read(), reduced-size packets included, and the texts of SDES and BYE, feedback, and
// application-defined packets end where they say. Feedback is one of generic NACK, PLI and FIR.
bool weir_rtcp_is_sound (const uint8_t *packet, size_t len);

// The last sender reports that were sent, for measuring round trips. Reports are recognised by
// their NTP time, so they may come from any clock. An all-zero log is empty.
#define WEIR_SR_LOG_SIZE 16

typedef struct {
  struct {
    uint32_t ssrc;
    uint32_t ntp;    // middle 32 bits of the NTP time
    int64_t sent_ns; // when the report was sent
  } sent[WEIR_SR_LOG_SIZE];
  uint64_t n; // reports added, ever
} WeirSrLog;

// Adds a report that was sent at `now_ns`; the oldest report is forgotten.
void weir_sr_log_add (WeirSrLog *self, const WeirNtpMap *sr, int64_t now_ns);

// Reports whether the log has a report of `ssrc`.
bool weir_sr_log_has (const WeirSrLog *self, uint32_t ssrc);

// Returns the round-trip time in ns, from a receiver's report block that arrived at `now_ns`.
// Returns -1 if the block names no report in the log, or a delay longer than the time since that
// report.
int64_t weir_sr_log_round_trip (const WeirSrLog *self, const WeirRtcpBlock *block, int64_t now_ns);
