// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Counts packets, losses and jitter of one RTP stream as its receiver (RFC 3550, appendix A). A
// stream that restarts, with another SSRC or far behind its last number, continues the counts:
// earlier losses stay counted.

#include <stdbool.h>
#include <stdint.h>

#include "rtp/rtcp_write.h"
#include "rtp/rtp.h"

// A repeated packet is recognised up to this many packets back. Further back it counts as
// reordered.
#define WEIR_RTP_STATS_WINDOW 512

typedef enum {
  WEIR_RTP_NEWEST, // ahead of all packets before it
  WEIR_RTP_REORDERED,
  WEIR_RTP_DUPLICATE,
} WeirRtpArrival;

typedef struct {
  uint32_t clock_rate; // Hz
  bool started;
  bool restart; // the next packet begins anew
  uint32_t ssrc;
  uint64_t packets; // all packets, duplicates included
  uint64_t reordered;
  uint64_t duplicates;
  uint64_t restarts;
  // Since the last restart, unwrapped.
  int64_t first_seq;
  int64_t max_seq;
  uint64_t distinct;    // packets without duplicates
  uint64_t lost_before; // packets lost before that restart
  uint64_t seen[WEIR_RTP_STATS_WINDOW / 64];
  bool transit_known;
  uint32_t transit;
  uint32_t jitter16;                             // 16 times the jitter, in ticks
  uint64_t expected_reported, distinct_reported; // values at the last report
} WeirRtpStats;

// Starts a stream. `clock_rate` is in Hz; 0 means 90000.
void weir_rtp_stats_init (WeirRtpStats *self, uint32_t clock_rate);

// Counts a packet that arrived at `arrival_ns`, on any clock.
WeirRtpArrival weir_rtp_stats_add (WeirRtpStats *self, const WeirRtp *rtp, int64_t arrival_ns);

// Has the next packet begin the stream anew, whatever its numbers.
void weir_rtp_stats_restart (WeirRtpStats *self);

// Returns the number of packets lost in all.
uint64_t weir_rtp_stats_lost (const WeirRtpStats *self);
// Returns the interarrival jitter in ns.
int64_t weir_rtp_stats_jitter_ns (const WeirRtpStats *self);

// Writes the report block for the time since the last call. `last_sr` and `delay_sr` are 0: they
// come from sender reports.
void weir_rtp_stats_report (WeirRtpStats *self, WeirRtcpBlock *out);
