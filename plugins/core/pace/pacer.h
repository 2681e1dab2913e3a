// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Decides when the packets of one stream leave: a queue of packet descriptions (sizes and times,
// not the packets), and three rules. Packets leave in the order in which they came. Nothing here
// reads a clock: `now` is the stream's running time in ns. A pacer belongs to one thread at a time.
//
// By timestamp. A frame is the packets with one RTP timestamp, or with one time. The n packets of a
// frame leave in groups of `max_burst` (b), spread evenly over the time to the next frame. With S
// (k) the start of frame k:
//
//   S (k)    = time (k) + upstream + delay
//   due (i)  = S (k) + b * floor (i / b) / n * (S (k + 1) - S (k))
//
// This holds if the whole frame is there when its first group leaves; packets that come later are
// spread over the rest of the frame's time. `delay` is how late frames arrive: it rises at once
// with a frame that is later, sinks by 1/64 of the difference with every other frame, and is at
// most 10 s. While the next frame's time is not known, a frame lasts for its own duration, or else
// as long as the shorter one of the last two frames; never longer than WEIR_PACE_FRAME_MAX.
//
// By bitrate. A token bucket of `burst` bytes (at least one packet). In any period of t seconds
//
//   bytes due <= max (burst, largest packet) + bitrate / 8 * t
//
// Packets that leave late are made up for by those behind them, but only WEIR_PACE_LATE_NS and a
// round of it: however late a thread wakes, no larger burst leaves.
//
// With bitrate 0 the rate is measured from the packets' times, as a moving average. It is then
// multiplied by 1 + lag / 2 s, within 0.5 and 2, so that output follows input; the lag is how much
// later behind its time the next packet leaves than the first packet did. Packets leave at once
// until 200 ms of the stream have come.
//
// By block. The rule of a storage server for video on demand (Y. R. Choe, "Design and
// Implementation of a Resource-Efficient Storage Server for VoD", PhD dissertation, Purdue
// University, 2007, figure 3.1). A first block of `block_ns` (measured at `bitrate`, or by the
// packets' times if that is 0) leaves at once to fill the player's buffer. Then a cycle begins, in
// which one block leaves each `block_ns`, the first of them at once. If a block begins late, the
// delay is a deficit, which shortens the next waits until it is made up:
//
//   due (1)         = left (0), when all of block 0 has left
//   due (k + 1)     = begun (k) + block_ns - min (deficit (k), block_ns), after all of block k
//   deficit (1)     = begun (1) - left (0)
//   deficit (k + 1) = max (0, deficit (k) + begun (k + 1) - begun (k) - block_ns)
//
// so block k begins at left (0) + (k - 1) * block_ns, plus any deficit that is left. The reader is
// assumed to play from the end of the first block on, so it holds one to two blocks. If it has
// played everything sent before the next packet leaves, that packet is late: the block is counted
// as a starvation, and the reader plays on from there.
//
// With rounds, each packet leaves at the first time phase + i * round that is not before its own
// time: never early, and at most one round late. A round in which more than `round_bytes` would
// leave at once is divided into WEIR_PACE_PARTS rounds.
//
// Times are repaired so that they never go back. A frame that goes back by less than 1 s joins the
// frame before. A frame that goes back by more, or is more than 10 s ahead of both the frame before
// and the clock, begins where the frame before ended, and later frames are shifted with it. A first
// frame whose time differs from the clock by more than 10 s begins now. By timestamp, so does any
// frame that comes more than 10 s late, for example after the clock was set forward. A packet
// without a time belongs to the frame before; if its RTP timestamp is new, or no packet has had a
// time yet, it begins a frame now. If the clock is set back by 1 s or more, the pacer's clock
// continues from its last time.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_PACE_NO_TIME INT64_MIN
#define WEIR_PACE_NEVER INT64_MAX
#define WEIR_PACE_FRAME_MAX INT64_C (1000000000)  // ns
#define WEIR_PACE_BACK_MAX INT64_C (1000000000)   // ns; a smaller step back joins two frames
#define WEIR_PACE_AHEAD_MAX INT64_C (10000000000) // ns
#define WEIR_PACE_HELD_NS INT64_C (1000000000)    // the queue is full with any of these three
#define WEIR_PACE_HELD_PACKETS 4096
#define WEIR_PACE_HELD_BYTES (4 << 20)
#define WEIR_PACE_PERIOD_NS INT64_C (200000000) // length of one measurement of the bitrate
#define WEIR_PACE_LATE_NS INT64_C (5000000)     // a packet that leaves later than this is late
#define WEIR_PACE_PARTS 3                       // of a round with too many bytes

typedef enum { WEIR_PACE_TIMESTAMP, WEIR_PACE_BITRATE, WEIR_PACE_BLOCK } WeirPaceMode;

typedef struct {
  WeirPaceMode mode;
  uint32_t max_burst;   // packets, at least 1
  uint64_t bitrate;     // bits per second; 0: the stream's own rate
  uint32_t burst;       // bytes
  int64_t block_ns;     // ns, at least 1
  int64_t round_ns;     // ns; 0: no rounds
  int64_t phase_ns;     // ns, offset of the rounds
  uint32_t round_bytes; // most bytes of a round that is not divided; 0: any number
} WeirPaceSettings;

typedef struct {
  size_t size;
  int64_t time_ns;     // running time in ns, or WEIR_PACE_NO_TIME
  int64_t duration_ns; // duration of its frame; 0: not known
  bool is_rtp;
  uint32_t rtp_time;
} WeirPacePacket;

// At all times, in = out + flushed + weir_pacer_queued().
typedef struct {
  uint64_t in, out, flushed;
  uint64_t bytes_out;
  uint64_t repaired;    // packets whose time was missing or changed
  uint64_t late;        // packets that left more than WEIR_PACE_LATE_NS after their time
  int64_t latest_ns;    // the longest such delay
  uint64_t overruns;    // by block: blocks that took longer than block_ns
  uint64_t starvations; // by block: blocks with a packet that the reader had to wait for
} WeirPaceCounts;

typedef struct {
  int64_t time, arrival;
  uint32_t size;
  bool begins_frame;
} WeirPaceEntry;

typedef struct {
  WeirPaceSettings settings;
  WeirPaceCounts counts;
  int64_t upstream_ns; // planned delay of frames behind their times, set by the caller

  // The queue: a ring.
  WeirPaceEntry *entries;
  size_t first, n, capacity; // capacity: a power of two, or 0
  size_t n_frame;            // queued packets of the first packet's frame
  uint64_t bytes;

  // The clock, which never goes back.
  int64_t now, clock_shift;

  // The times of the input. `time_shift` is added to them since the last repair.
  bool started, timed;
  int64_t raw_time, time, time_shift;
  uint32_t rtp_time;
  int64_t delay, interval, last_interval;

  // The bitrate of the input.
  uint64_t period_bytes;
  int64_t period_start;
  unsigned n_periods;
  double measured;

  // The end of the round in which the first packet leaves, on the clock outside, and whether that
  // round is divided; or WEIR_PACE_NO_TIME.
  int64_t round_end;
  bool is_divided;

  // By timestamp: start of the frame whose packets leave now, due time of its last group, and the
  // number of packets in that group.
  int64_t frame_start, group_due;
  uint32_t group;

  // By bitrate: when the bucket is full again, and the delay of a packet behind its time with an
  // empty queue.
  int64_t full_at, lag_origin;
  bool bucket_used, have_lag_origin;

  // By block. Content is in ns of play.
  bool block_begun, playing, starved; // starved: in this block
  int64_t begun_ns, last_out_ns, deficit_ns, play_start_ns;
  int64_t content, content_first, block_end;
} WeirPacer;

// Returns the phase for which the rounds of all pacers begin at the same times of the clock, and
// those of pacer `i` in its share of `parts` (at least 1) equal parts of a round. `base_ns` is the
// clock's time at running time 0.
int64_t weir_pace_phase (int64_t round_ns, unsigned parts, unsigned i, uint64_t base_ns);

// Initialises a pacer; free it with weir_pacer_free(). `settings` is copied.
void weir_pacer_init (WeirPacer *self, const WeirPaceSettings *settings);
void weir_pacer_free (WeirPacer *self);

// Changes the settings. A change of mode, or between a fixed and a measured bitrate, starts the
// rule afresh with the packets in the queue.
void weir_pacer_set (WeirPacer *self, const WeirPaceSettings *settings);

// Appends a packet. Returns 0, or -ENOMEM.
int weir_pacer_push (WeirPacer *self, const WeirPacePacket *packet, int64_t now);

// Returns when the first packet leaves, maybe in the past; WEIR_PACE_NEVER if the queue is empty.
int64_t weir_pacer_due (WeirPacer *self, int64_t now);

// Removes the first packet, which leaves now. The queue must not be empty.
void weir_pacer_pop (WeirPacer *self, int64_t now);

// Says that the last `rest` bytes of the packet that was removed last leave only now. With a
// bitrate, they are late if the reader has played all before them.
void weir_pacer_go_on (WeirPacer *self, size_t rest, int64_t now);

// Empties the queue and forgets all times.
void weir_pacer_flush (WeirPacer *self);

// Returns the number of packets in the queue.
static inline size_t
weir_pacer_queued (const WeirPacer *self)
{
  return self->n;
}

// Reports whether the queue is full: it holds WEIR_PACE_HELD_NS of the stream, or
// WEIR_PACE_HELD_PACKETS packets, or WEIR_PACE_HELD_BYTES bytes.
bool weir_pacer_full (const WeirPacer *self);

// Reports whether the queue holds half of one of these limits, or more. A thread that waits because
// the queue is full continues below it, so that it wakes once for many packets.
bool weir_pacer_half_full (const WeirPacer *self);

// Returns how much later than its time and `upstream_ns` a packet may leave, in ns.
int64_t weir_pacer_latency (const WeirPacer *self);
