// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What a receiver counts of one RTP stream (RFC 3550, appendix A), with sequence numbers that never
// wrap. A stream that begins anew, with another SSRC or far behind where it was, is counted on:
// what was lost before stays lost.

#include <stdbool.h>
#include <stdint.h>

#include "rtp/rtcp_write.h"
#include "rtp/rtp.h"

// So far back a repeated packet is known for what it is; further back it counts as reordered.
#define WEIR_RTP_STATS_WINDOW 512

typedef enum {
  WEIR_RTP_NEWEST, // ahead of all before it
  WEIR_RTP_REORDERED,
  WEIR_RTP_DUPLICATE,
} WeirRtpArrival;

typedef struct {
  uint32_t clock_rate;
  bool started;
  uint32_t ssrc;
  uint64_t packets; // all of them, duplicates too
  uint64_t reordered;
  uint64_t duplicates;
  uint64_t restarts;
  // Since the last restart, unwrapped.
  int64_t first_seq;
  int64_t max_seq;
  uint64_t distinct;
  uint64_t lost_before; // before that restart
  uint64_t seen[WEIR_RTP_STATS_WINDOW / 64];
  bool transit_known;
  uint32_t transit;
  uint32_t jitter16;                             // 16 times the jitter, in ticks
  uint64_t expected_reported, distinct_reported; // up to the last report
} WeirRtpStats;

// `clock_rate` in Hz; 0 is taken as 90000.
void weir_rtp_stats_init (WeirRtpStats *self, uint32_t clock_rate);

WeirRtpArrival weir_rtp_stats_add (WeirRtpStats *self, const WeirRtp *rtp, int64_t arrival_ns);

uint64_t weir_rtp_stats_lost (const WeirRtpStats *self);
int64_t weir_rtp_stats_jitter_ns (const WeirRtpStats *self);

// The report block for the time since the last call, without what comes from sender reports.
void weir_rtp_stats_report (WeirRtpStats *self, WeirRtcpBlock *out);
