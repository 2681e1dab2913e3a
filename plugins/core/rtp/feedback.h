// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the RTCP by which a receiver tells a sender when each packet arrived, and what the line
// carries: TWCC (draft-holmer-rmcat-transport-wide-cc-extensions-01) and REMB
// (draft-alvestrand-rmcat-remb-03).

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bits/bytes.h"

#define WEIR_FEEDBACK_MAX 1024 // packets of one feedback packet

// What one feedback packet tells. Times are ticks of the receiver's clock, 250 us each, which wrap.
typedef struct {
  uint16_t first;  // transport-wide number of the first packet; those of the next ones follow
  size_t n;        // packets told of
  size_t left_out; // packets beyond WEIR_FEEDBACK_MAX, of which nothing is kept
  bool arrived[WEIR_FEEDBACK_MAX];
  uint32_t ticks[WEIR_FEEDBACK_MAX]; // when a packet arrived, if it did
} WeirFeedback;

// Reads the next TWCC of a compound or reduced-size packet (RFC 5506), and moves the cursor behind
// it; other packets are skipped. Returns 1; 0 if there is none left; -EBADMSG if the rest is
// malformed. Without 1, `out` has no meaning.
int weir_feedback_next (WeirBytes *compound, WeirFeedback *out);

// Reads the lowest bit rate that a compound or reduced-size packet asks for by REMB, in bit/s.
// Returns false if it asks for none.
bool weir_feedback_read_remb (const uint8_t *packet, size_t len, uint64_t *bits);
