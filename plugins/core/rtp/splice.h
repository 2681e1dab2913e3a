// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Joins the runs of an upstream into one outgoing RTP stream. An upstream that reconnects has a new
// SSRC and unrelated numbers (RFC 3550, section 5.1); readers must see continuous sequence numbers
// and timestamps. The first run passes with its own numbers; each later run is moved by one offset,
// so distances within a run never change.
//
// Splice time is in ns from the start of the first run. All tracks of a presentation use the same
// instant as 0, so they stay in sync across every splice.

#include <stdbool.h>
#include <stdint.h>

typedef struct {
  uint32_t clock_rate; // Hz, from the SDP
  uint32_t origin;     // outgoing timestamp at splice time 0
  int64_t run_start;   // ns, start of this run
  uint32_t ts_offset;  // outgoing timestamp minus the upstream's
  bool seq_known;      // this run has had a packet
  int64_t in_seq;      // upstream's sequence number, unwrapped
  int64_t in_ts;       // upstream's timestamp, unwrapped
  int64_t in_ts_first; // upstream's timestamp at the start of this run, unwrapped
  int64_t in_ts_max;   // highest upstream timestamp of this run, unwrapped
  int64_t seq_offset;  // outgoing sequence number minus the upstream's, both unwrapped
  int64_t first_seq;   // first outgoing sequence number of this run
  int64_t last_seq;    // highest outgoing sequence number
  uint64_t n_runs;     // runs begun
} WeirSplice;

// Starts a stream without a run. `clock_rate` is in Hz; 0 means 90000.
void weir_splice_init (WeirSplice *splice, uint32_t clock_rate);

// Begins a run. `base` is the upstream's RTP timestamp (from RTP-Info, or from the first packet) at
// splice time `start` (ns). The first run keeps its own numbers, wherever it begins.
void weir_splice_begin (WeirSplice *splice, uint32_t base, int64_t start);

// Gives the outgoing numbers of an upstream packet. Returns 0; -EINVAL before the first run;
// -ESTALE for a reordered packet from before a splice, which has no number left.
int weir_splice_map (WeirSplice *splice, uint16_t seq, uint32_t timestamp, uint16_t *out_seq,
    uint32_t *out_timestamp);

// Returns the outgoing timestamp at splice time `time` (ns).
uint32_t weir_splice_timestamp_at (const WeirSplice *splice, int64_t time);

// Returns the splice time in ns of an upstream timestamp of this run, taken as the one nearest to
// the last packets.
int64_t weir_splice_time (const WeirSplice *splice, uint32_t timestamp);

// Returns the splice time in ns of the highest timestamp of this run; 0 before the first run.
int64_t weir_splice_end (const WeirSplice *splice);
