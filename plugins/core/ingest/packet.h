// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A received RTP packet, parsed once, as it travels from the socket to the callback of a track.

#include <stddef.h>
#include <stdint.h>

#include "rtp/rtp.h"

typedef struct {
  WeirRtp rtp;
  uint8_t *data; // the whole packet; valid during the callback, which may change the bytes
  size_t len;
  uint64_t run;       // 1 for the first sender; rises when a sender starts or another takes over
  int64_t seq;        // sequence number, unwrapped within the run
  int64_t arrival_ns; // CLOCK_MONOTONIC, when the kernel received the packet
  uint64_t missing;   // packets directly before this one that are given up; needs a reorder window
} WeirIngestPacket;
