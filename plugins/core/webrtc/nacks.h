// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The missing packets of one RTP stream, and when to ask for them (generic NACK, RFC 4585, 6.2.1).
//
// A packet is asked for 5 ms after a later one came, as it may just have been overtaken; then again
// after each round trip, at most WEIR_NACKS_TRIES times. It is given up after that, or when it has
// been missing for the window, or when there are too many.
//
// The round trip is measured from the first request to the packet, so it includes the sender's wait
// before it sends.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_NACKS_MAX 256
#define WEIR_NACKS_TRIES 10

typedef struct {
  int64_t seq;      // unwrapped
  int64_t lost_ns;  // when it was noticed
  int64_t asked_ns; // when it was asked for first
  int64_t due_ns;   // when it is asked for next, or given up
  uint8_t tries;
} WeirNack;

typedef struct {
  int64_t window_ns;
  bool asks;
  int64_t round_trip_ns; // smoothed; 0: not known
  int64_t due_ns;        // when weir_nacks_expire() and weir_nacks_write() have something to do
  size_t n;
  WeirNack missing[WEIR_NACKS_MAX]; // by number, the lowest first
} WeirNacks;

// Starts with nothing missing. A packet is given up after `window_ns`. Unless `asks`, none is asked
// for.
void weir_nacks_init (WeirNacks *self, int64_t window_ns, bool asks);

// Notes that the `n` packets from `first` on are missing, all above those noted before. Returns the
// number of packets given up for it: the oldest ones leave if there are too many.
uint64_t weir_nacks_miss (WeirNacks *self, int64_t first, uint64_t n, int64_t now_ns);

// Notes that a packet came. Returns whether it was missing.
bool weir_nacks_take (WeirNacks *self, int64_t seq, int64_t now_ns);

// Gives up the packets whose time is over, and returns their number.
uint64_t weir_nacks_expire (WeirNacks *self, int64_t now_ns);

// Gives up all packets, and returns their number.
uint64_t weir_nacks_clear (WeirNacks *self);

// Writes a request of `ssrc` to the stream `media` for the packets that are due, and adds their
// number to `*asked`. Call weir_nacks_expire() before. What `room` has no place for stays due.
// Returns the length in bytes, or 0.
size_t weir_nacks_write (WeirNacks *self, uint8_t *out, size_t room, uint32_t ssrc, uint32_t media,
    int64_t now_ns, uint64_t *asked);
