// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What a receiver says, as the sender reads it (RFC 3550, sections 6.4 to 6.6).

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rtp/rtcp.h"
#include "rtp/rtcp_write.h"

#define WEIR_RTCP_BLOCKS_MAX 31

typedef struct {
  uint32_t ssrc;   // who reports
  size_t n_blocks; // what does not fit is left out
  WeirRtcpBlock blocks[WEIR_RTCP_BLOCKS_MAX];
  bool bye;
  bool more; // something that is no report, name or goodbye: feedback, or of the application's own
} WeirRtcpReport;

// Reads a compound packet that is as RFC 3550, appendix A.2 wants it, and whose packets are as long
// as what they say they hold. Returns 0; -ENOENT for one that is sound and does not begin with a
// report (RFC 5506); or -EBADMSG. Then `out` is untouched.
int weir_rtcp_read (const uint8_t *packet, size_t len, WeirRtcpReport *out);

// Whether a compound packet, or a part of one (RFC 5506), asks for a keyframe of a stream: by PLI
// (RFC 4585, section 6.3.1) or FIR (RFC 5104, section 4.3.1). One that is not sound asks for
// nothing.
bool weir_rtcp_asks_key (const uint8_t *packet, size_t len, uint32_t ssrc);

// The sender reports that were sent last, for the round trip to who has got them. They are known
// by what they said, so their clock may be anybody's. All zeros is empty.
#define WEIR_SR_LOG_SIZE 16

typedef struct {
  struct {
    uint32_t ssrc;
    uint32_t ntp; // the middle of it
    int64_t sent_ns;
  } sent[WEIR_SR_LOG_SIZE];
  uint64_t n; // all that there were
} WeirSrLog;

void weir_sr_log_add (WeirSrLog *self, const WeirNtpMap *sr, int64_t now_ns);

// Whether one of them was under that SSRC.
bool weir_sr_log_has (const WeirSrLog *self, uint32_t ssrc);

// The round trip in ns that a block tells of; -1 where it names none of the reports, or a delay
// that cannot be.
int64_t weir_sr_log_round_trip (const WeirSrLog *self, const WeirRtcpBlock *block, int64_t now_ns);
