// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The counts of a received track. Each datagram is in exactly one count:
//
//     datagrams = delivered + rtcp + held + the sum of dropped

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rtp/rtcp.h"

// Why a received datagram was not delivered.
typedef enum {
  WEIR_INGEST_MALFORMED,    // neither RTP nor RTCP, or a length is beyond its end
  WEIR_INGEST_FOREIGN,      // from the address of another sender
  WEIR_INGEST_OTHER_SSRC,   // another SSRC, while the one before still sends
  WEIR_INGEST_PAYLOAD_TYPE, // not a payload type of the track
  WEIR_INGEST_DUPLICATE,    // received before
  WEIR_INGEST_LATE,         // came after its gap was given up, or too far behind
  WEIR_INGEST_FLUSHED,      // the track was being removed
  WEIR_INGEST_NO_MEMORY,    // no memory to hold it behind a gap
  WEIR_INGEST_N_DROPS
} WeirIngestDrop;

// Returns the name of a reason in statistics, such as "other-ssrc".
const char *weir_ingest_drop_name (WeirIngestDrop reason);

// What was put right in a packet that was delivered.
typedef enum {
  WEIR_INGEST_RENUMBERED, // numbers of a connection's packets that went back
  WEIR_INGEST_RESTAMPED,  // an odd timestamp
  WEIR_INGEST_N_REPAIRS
} WeirIngestRepair;

typedef struct {
  uint64_t datagrams; // received, or put in by a call
  uint64_t bytes;     // payload of these datagrams
  uint64_t delivered;
  uint64_t rtcp; // valid RTCP of the sender
  uint64_t held; // in the reorder window now
  uint64_t dropped[WEIR_INGEST_N_DROPS];
  // Skipped by the kernel because a receive buffer was full; not in `datagrams`. The kernel counts
  // segments that it merged as one.
  uint64_t kernel_drops;
  uint64_t lost; // by sequence numbers; includes kernel_drops
  uint64_t reordered;
  uint64_t runs; // senders that started or took over
  uint64_t repairs[WEIR_INGEST_N_REPAIRS];
  uint64_t reports_sent;
  uint64_t keys_asked; // keyframe requests sent
  int64_t jitter_ns;   // RFC 3550, appendix A.8
  int64_t heard_ns;    // when the last packet was accepted (CLOCK_MONOTONIC); 0: never
  bool bye;            // the sender said BYE, and no packet came since
  uint32_t ssrc;       // of the sender; 0 before the first packet
  WeirNtpMap ntp;      // the sender's last report
  size_t buffer;       // bytes of the receive buffer for media, as the kernel accounts them
} WeirIngestStats;
