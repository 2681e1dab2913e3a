// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Tells a sender when each of its packets arrived, by their transport-wide sequence numbers
// (draft-holmer-rmcat-transport-wide-cc-extensions-01). The sender estimates its bandwidth by it.
//
// Feedback is due 64 ms after the first packet that it tells of, or when WEIR_TWCC_BATCH packets
// wait. A packet that comes after a later one was told of is told of next, with those that follow
// it: so the sender learns that it is not lost.
//
// All zeros are not a valid object: call weir_twcc_init().

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_TWCC_RING 1024 // numbers that are remembered
#define WEIR_TWCC_BATCH 128
#define WEIR_TWCC_INTERVAL_NS INT64_C (64000000)

typedef struct {
  uint32_t ticks[WEIR_TWCC_RING]; // when a packet arrived, in units of 250 us; wraps
  uint64_t seen[WEIR_TWCC_RING / 64];
  int64_t newest;   // highest number that arrived, unwrapped
  int64_t next;     // the first number that the next feedback tells of
  unsigned waiting; // packets that arrived since the last feedback
  int64_t due_ns;   // WEIR_NEVER if none waits
  int32_t probe;    // the number that confirms a restart; -1: none
  uint8_t count;    // of the next feedback packet
} WeirTwcc;

void weir_twcc_init (WeirTwcc *self);

// Notes that the packet with the transport-wide number `seq` arrived at `now_ns`. Numbers far
// behind the newest one are a restart if two of them come in a row; one alone is left out.
void weir_twcc_take (WeirTwcc *self, uint16_t seq, int64_t now_ns);

// Writes a feedback packet from `ssrc`; `media` is any SSRC of the sender. It tells of as many
// packets as `room` allows; `due_ns` stays in the past if there are more. Returns the length in
// bytes, or 0 if no packet waits or `room` is too small for the first one.
size_t weir_twcc_write (WeirTwcc *self, uint8_t *out, size_t room, uint32_t ssrc, uint32_t media);
