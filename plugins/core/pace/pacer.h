// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// When the packets of one stream leave. A queue of what is known of each packet, without the
// packet, and three rules. Nothing here reads a clock: `now` is the stream's running time in ns.
// Packets leave in the order in which they came.
//
// By timestamp. A frame is what has one RTP timestamp, or one time. Its n packets leave `max_burst`
// (b) at once, the groups evenly over the time to the next frame. With S (k) the start of frame k:
//
//   S (k)    = time (k) + upstream + delay
//   due (i)  = S (k) + b * floor (i / b) / n * (S (k + 1) - S (k))
//
// if all of the frame is there when its first group leaves; what comes later is spread over what
// is left of the frame's time. `delay` is how late frames come: it rises to the latest at once, and
// sinks by 1/64 of the difference with each frame; 10 s is the most. A frame whose end is not known
// yet is taken to be as long as it says itself, or as the shorter one of the last two, and never to
// be longer than WEIR_PACE_FRAME_MAX.
//
// By bitrate. A token bucket of `burst` bytes (at least one packet). In any period of t seconds
//
//   bytes due <= max (burst, largest packet) + bitrate / 8 * t
//
// With bitrate 0 it is measured by the packets' times, as a moving average, and raised or lowered
// by up to a factor of two by how much later packets leave than at first: what leaves follows what
// comes. Until the first 200 ms of the stream have come, packets leave at once.
//
// By block: the rule of a storage server for video on demand (Y. R. Choe, "Design and
// Implementation of a Resource-Efficient Storage Server for VoD", PhD dissertation, Purdue
// University, 2007). What lasts `block_ns` (at `bitrate`, or by the packets' times where that is 0)
// leaves at once, as the initial buffer; then a block each block_ns. The time by which a block
// began later than block_ns after the one before is a deficit, by which the next waits are shorter,
// until it is made up:
//
//   deficit (k + 1) = max (0, deficit (k) + begun (k + 1) - begun (k) - block_ns)
//   due (k + 1)     = begun (k) + block_ns - min (deficit (k), block_ns), behind all of block k
//
// so block k begins at begun (0) + k * block_ns, but for what is not made up yet. The reader is
// thought to play from the end of the first block on; where what was sent is played before the next
// packet leaves, it starves, and plays on from there.
//
// With rounds, each packet leaves at the first of the times phase + i * round that is not before
// its own: never early, and at most a round late.
//
// Times are repaired to go forward: a frame that goes back by less than a second joins the frame
// before; one that goes back by more, or is more than 10 s ahead of both the frame before and the
// clock, begins where the frame before ended, and those after it follow. A first frame that is more
// than 10 s off begins now; by timestamp, so does any that comes more than 10 s late, as after a
// clock was set forward. Packets without a time belong to the frame before. A clock that is set
// back by a second or more stands still for the pacer.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_PACE_NO_TIME INT64_MIN
#define WEIR_PACE_NEVER INT64_MAX
#define WEIR_PACE_FRAME_MAX INT64_C (1000000000)  // ns
#define WEIR_PACE_BACK_MAX INT64_C (1000000000)   // ns, of a frame that joins the one before
#define WEIR_PACE_AHEAD_MAX INT64_C (10000000000) // ns
#define WEIR_PACE_HELD_NS INT64_C (1000000000) // what the queue holds, and the most in packets and
#define WEIR_PACE_HELD_PACKETS 4096            // bytes
#define WEIR_PACE_HELD_BYTES (4 << 20)
#define WEIR_PACE_PERIOD_NS INT64_C (200000000) // in which the bitrate is measured
#define WEIR_PACE_STARVED_NS INT64_C (10000000) // a reader that waits for less does not starve
#define WEIR_PACE_LATE_NS INT64_C (5000000)     // a packet that leaves later than due is late

typedef enum { WEIR_PACE_TIMESTAMP, WEIR_PACE_BITRATE, WEIR_PACE_BLOCK } WeirPaceMode;

typedef struct {
  WeirPaceMode mode;
  uint32_t max_burst; // packets, at least 1
  uint64_t bitrate;   // bits per second; 0: the stream's own
  uint32_t burst;     // bytes
  int64_t block_ns;   // at least 1
  int64_t round_ns;   // 0: none
  int64_t phase_ns;   // of the rounds
} WeirPaceSettings;

typedef struct {
  size_t size;
  int64_t time_ns;     // or WEIR_PACE_NO_TIME
  int64_t duration_ns; // of its frame; 0: not known
  bool is_rtp;
  uint32_t rtp_time;
} WeirPacePacket;

// in = out + flushed + what weir_pacer_queued() says.
typedef struct {
  uint64_t in, out, flushed;
  uint64_t bytes_out;
  uint64_t repaired;              // packets whose time was missing or changed
  uint64_t late;                  // left more than WEIR_PACE_LATE_NS after they were due
  int64_t latest_ns;              // the most by which one was
  uint64_t overruns, starvations; // by block: blocks that took longer than block_ns
} WeirPaceCounts;

typedef struct {
  int64_t time, arrival;
  uint32_t size;
  bool begins_frame;
} WeirPaceEntry;

typedef struct {
  WeirPaceSettings settings;
  WeirPaceCounts counts;
  int64_t upstream_ns; // how much later than their times frames come by plan

  // The queue: a ring.
  WeirPaceEntry *entries;
  size_t first, n, capacity; // capacity: a power of two, or 0
  size_t n_frame;            // in the queue, of the frame of its head
  uint64_t bytes;

  // The clock, as it goes forward.
  int64_t now, clock_shift;

  // The times that come in. `time_shift` is what is added to them since the last repair.
  bool started, timed;
  int64_t raw_time, time, time_shift;
  uint32_t rtp_time;
  int64_t delay, interval, last_interval;

  // The bitrate that comes in.
  uint64_t period_bytes;
  int64_t period_start;
  unsigned n_periods;
  double measured;

  // By timestamp: the start of the frame of which packets leave, when its last group was due, and
  // how many packets that had.
  int64_t frame_start, group_due;
  uint32_t group;

  // By bitrate: when the bucket is full again; how much later than its time a packet leaves when
  // nothing is behind.
  int64_t full_at, lag_origin;
  bool bucket_used, have_lag_origin;

  // By block. Content is in ns of play.
  bool block_begun, playing;
  int64_t begun_ns, last_out_ns, deficit_ns, play_start_ns;
  int64_t content, content_first, block_end;
} WeirPacer;

// The phase with which the rounds of all pacers begin at the same times of the clock, and those of
// the i-th pacer in its one of `parts` (at least 1) equal parts of a round. `base_ns` is the
// clock's time when the pacer's running time was 0.
int64_t weir_pace_phase (int64_t round_ns, unsigned parts, unsigned i, uint64_t base_ns);

void weir_pacer_init (WeirPacer *self, const WeirPaceSettings *settings);
void weir_pacer_free (WeirPacer *self);

// May be called at any time. A change of mode begins anew with what is in the queue.
void weir_pacer_set (WeirPacer *self, const WeirPaceSettings *settings);

// Appends a packet. 0, or -ENOMEM.
int weir_pacer_push (WeirPacer *self, const WeirPacePacket *packet, int64_t now);

// When the first packet leaves; WEIR_PACE_NEVER if there is none. It may be in the past.
int64_t weir_pacer_due (WeirPacer *self, int64_t now);

// The first packet leaves now. Not to be called when there is none.
void weir_pacer_pop (WeirPacer *self, int64_t now);

// Forgets what is in the queue, and all times.
void weir_pacer_flush (WeirPacer *self);

static inline size_t
weir_pacer_queued (const WeirPacer *self)
{
  return self->n;
}

// There is enough in the queue: a second of the stream, or as much as is reasonable.
bool weir_pacer_full (const WeirPacer *self);

// By how much later than in time packets may leave: what to report as latency.
int64_t weir_pacer_latency (const WeirPacer *self);
