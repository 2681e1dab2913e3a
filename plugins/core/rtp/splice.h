// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One outgoing RTP stream out of several upstream lives. An upstream that was lost comes back with
// a new SSRC and other numbers (RFC 3550, section 5.1); readers must see sequence numbers and
// timestamps go on. The first life passes with its own numbers; each later one is moved by one
// offset for its whole length, so the distances within a life never change.
//
// Time in a splice is counted in ns from the start of the first life, the same instant for all
// tracks of a presentation, so that tracks stay in step over every splice.

#include <stdbool.h>
#include <stdint.h>

typedef struct {
  uint32_t clock_rate; // Hz, from the SDP
  uint32_t origin;     // outgoing timestamp at time 0
  int64_t life_start;  // ns
  uint32_t ts_offset;  // outgoing timestamp - upstream's
  bool seq_known;      // this life has had a packet
  int64_t in_seq;      // upstream's sequence number, unwrapped
  int64_t in_ts;       // upstream's timestamp, unwrapped
  int64_t in_ts_first; // upstream's timestamp when this life began, unwrapped
  int64_t in_ts_max;   // the furthest of this life
  int64_t seq_offset;  // outgoing sequence number - upstream's, both unwrapped
  int64_t first_seq;   // first outgoing sequence number of this life
  int64_t last_seq;    // highest outgoing one
  uint64_t n_lives;
} WeirSplice;

// `clock_rate` in Hz; 0 is taken as 90000.
void weir_splice_init (WeirSplice *splice, uint32_t clock_rate);

// A life begins: `base` is the upstream's RTP timestamp (from RTP-Info, or from the first packet)
// of the instant `start`, in ns of the splice's time. The first life keeps its numbers wherever it
// begins.
void weir_splice_begin (WeirSplice *splice, uint32_t base, int64_t start);

// The outgoing numbers of an upstream packet. Returns 0; -EINVAL before the first life; or -ESTALE
// for a reordered packet from before a splice, for which there is no number left.
int weir_splice_map (WeirSplice *splice, uint16_t seq, uint32_t timestamp, uint16_t *out_seq,
    uint32_t *out_timestamp);

// The outgoing timestamp of an instant, in ns of the splice's time.
uint32_t weir_splice_timestamp_at (const WeirSplice *splice, int64_t time);

// The time of an upstream timestamp in this life, near those that came last.
int64_t weir_splice_time (const WeirSplice *splice, uint32_t timestamp);

// The time of the furthest packet given out, in ns of the splice's time; 0 if there was none.
int64_t weir_splice_end (const WeirSplice *splice);
