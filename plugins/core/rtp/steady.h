// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Makes one steady stream of what a sender really sends: its packets leave with the SSRC of the
// first one, with sequence numbers that continue when the sender begins anew, and without jumps of
// their timestamps.
//
// A timestamp that is far from where the stream is by its last timestamps and by the time that has
// passed is odd. It is moved next to its neighbours. If the next timestamp follows it, the sender
// goes on from there, and so does the stream, without a jump; if the next one follows those before
// it, it was a single mistake, and nothing else changes.
//
// For one thread at a time.

#include <stdbool.h>
#include <stdint.h>

#include "rtp/rtp.h"

// Clocks drift: older times are compared no more.
#define WEIR_STEADY_ANCHOR_NS INT64_C (60000000000)

typedef struct {
  uint32_t clock_rate; // Hz
  bool begun;
  bool is_plain; // packets leave with the numbers with which they come
  uint32_t ssrc; // of all packets that leave
  // Sequence numbers.
  uint16_t last_seq;  // the highest that came
  uint16_t seq_shift; // added to those that come
  // Timestamps.
  uint32_t last_ts; // the latest that came and was not odd
  int64_t last_ns;  // when it came
  uint32_t ts_shift;
  uint32_t step; // between the last two
  uint32_t near; // steps that need no second look
  uint32_t anchor_ts;
  int64_t anchor_ns; // when `anchor_ts` came
  bool odd;          // the last packet's timestamp was odd
  uint32_t odd_ts, odd_out;
  int64_t odd_ns;
} WeirSteady;

// Starts a stream. `clock_rate` is in Hz; 0 means 90000.
void weir_steady_init (WeirSteady *self, uint32_t clock_rate);

// Reports whether a packet leaves as it came, and notes it then. If not, call the two functions
// below. `begins` and `now_ns` are theirs.
static inline bool
weir_steady_passes (WeirSteady *self, const WeirRtp *rtp, bool begins, int64_t now_ns)
{
  uint32_t step = rtp->timestamp - self->last_ts;

  if (begins || !self->is_plain || step > self->near || rtp->ssrc != self->ssrc
      || now_ns - self->anchor_ns > WEIR_STEADY_ANCHOR_NS)
    return false;
  if (step > 0) {
    self->step = step;
    self->last_ts = rtp->timestamp;
    self->last_ns = now_ns;
  }
  if ((int16_t) (rtp->seq - self->last_seq) > 0)
    self->last_seq = rtp->seq;
  return true;
}

// Replaces the timestamp of a packet that came at `now_ns`. `begins` says that the packet has no
// relation to those before it: another SSRC, or numbers that go back. Sets `*moved` if the
// timestamp is an odd one that was not seen before.
void weir_steady_take_timestamp (
    WeirSteady *self, WeirRtp *rtp, bool begins, int64_t now_ns, bool *moved);

// Replaces the sequence number and the SSRC. `begins` says that the number follows the last one,
// whatever it is. Call it after weir_steady_take_timestamp().
void weir_steady_take_seq (WeirSteady *self, WeirRtp *rtp, bool begins);

// Returns the timestamp that leaves for one that a sender report names.
uint32_t weir_steady_timestamp (const WeirSteady *self, uint32_t timestamp);
