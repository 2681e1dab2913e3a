// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The window: a bounded piece of one stream, shared by all who read it, each from a place (a
// cursor) of its own. A cursor is a packet's position: packets are counted from 0 in the order in
// which they came, for as long as the window lives.
//
// Packets lie back to back in blocks, which are never written again once their packets are
// published. Whoever sends from a block holds a reference to it, so the writer never waits for
// them: it lets the oldest packets go and takes a new block. Memory is bounded by the bounds below,
// one block, and the blocks that are just being sent from. The blocks may lie in a file (blocks.h).
//
// The writer reserves, fills and stages packets alone, without a lock; everything else happens
// under a lock of the owner's. Blocks are counted atomically.

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/layers.h"
#include "net/burst.h"
#include "window/blocks.h"

#define WEIR_WINDOW_BYTES_MIN WEIR_BLOCK_BYTES
#define WEIR_WINDOW_LIMIT_MIN ((size_t) 8 << 20) // that a window has where a disk is full
#define WEIR_NO_POSITION INT64_MAX

typedef enum {
  WEIR_PACKET_RTP = 1 << 0,         // else opaque bytes, or RTCP
  WEIR_PACKET_MARKER = 1 << 1,      // ends a frame
  WEIR_PACKET_START = 1 << 2,       // begins a frame
  WEIR_PACKET_JOIN = 1 << 3,        // a decoder can start here
  WEIR_PACKET_KEY = 1 << 4,         // of a frame that begins with a join point; all until the first
  WEIR_PACKET_DISCARDABLE = 1 << 5, // no other frame needs it
  WEIR_PACKET_TOLD = 1 << 6,        // its layer came with it, with these two (see WeirLayer):
  WEIR_PACKET_SWITCH_UP = 1 << 7,
  WEIR_PACKET_ENTER = 1 << 8,
  WEIR_PACKET_EXTRA = 1 << 9, // was put in: has the position of the next packet
} WeirPacketFlags;

typedef struct {
  WeirBlock *block;
  uint32_t offset, length;
  int64_t arrival_ns;
  int64_t rtp_time; // unwrapped, in ticks of the clock rate
  int64_t position; // in the window, or in the one that it was made of (see weir_window_stage_as)
  uint16_t seq;
  uint16_t flags;
  uint8_t spatial, quality, temporal;
} WeirPacket;

// How much of a stream is kept at most.
typedef struct {
  size_t bytes;
  size_t packets;
  int64_t time_ns;
  // Time does not take the newest join point, nor what came after it: it stays for those who come.
  bool keep_join;
} WeirWindowBounds;

typedef enum {
  WEIR_STAGE_MORE,   // the frame is not whole
  WEIR_STAGE_FRAME,  // the packet ended a frame
  WEIR_STAGE_URGENT, // nothing tells that more is to come (RTCP, or not RTP at all): don't wait
  WEIR_STAGE_FULL    // no other packet can be staged: publish
} WeirStageState;

typedef struct {
  WeirWindowBounds bounds;
  // Packets tail to head - 1 are here. Positions never go back.
  int64_t tail, head;
  int64_t last_join;   // WEIR_NO_POSITION if there is none in the window
  int64_t newest_time; // the latest RTP time from the newest join point on
  size_t bytes;        // of the packets here
  size_t limit;        // the most of them since it was made smaller; SIZE_MAX: it never was
  uint64_t n_opaque;   // packets, ever, that were neither RTP nor RTCP

  // Private from here on. A ring: the packet at position p is index[p & (capacity - 1)].
  WeirPacket *index;
  size_t capacity;

  // The writer's.
  WeirBlockFile *file; // a reference
  WeirBlock *block;
  size_t block_used;
  WeirPacket stage[WEIR_STAGE_PACKETS];
  size_t n_staged, bytes_staged;
  int64_t staged_ns; // when the first of them came
  WeirLayers layers;
  int64_t frame_start; // of the frame in hand
  bool in_frame, frame_key, frame_join, seen_key;
  int64_t late_join;     // a published packet that publishing has to mark
  int64_t last_rtp_time; // unwrapping
  int64_t frame_rtp_time;
} WeirWindow;

// 0, or -ENOMEM. `codec` tells how join points are recognised.
int weir_window_init (WeirWindow *window, WeirWindowBounds bounds, WeirCodec codec);
void weir_window_free (WeirWindow *window);

// Empties it. Positions go on.
void weir_window_flush (WeirWindow *window);

// Where the blocks lie that are taken from now on; NULL: in memory. What the file has no room for
// lies in memory: then the window should be made smaller. Only while it is empty.
void weir_window_set_file (WeirWindow *window, WeirBlockFile *file);

// ---- the writer, without the lock ----

// What the payloads are, from the next packet on.
void weir_window_set_codec (WeirWindow *window, WeirCodec codec);

// Room for a packet of 1 to WEIR_PACKET_MAX bytes. NULL if there is no memory, if the length is
// not one of these, or if WEIR_STAGE_PACKETS are staged.
uint8_t *weir_window_reserve (WeirWindow *window, size_t len);

// Takes the packet written into the reserved room, which came at `now_ns`. If `layer` is not NULL,
// it is what the payload says.
WeirStageState weir_window_stage (
    WeirWindow *window, size_t len, const WeirLayer *layer, int64_t now_ns);

// The same for a packet that was made of one in another window: it takes over all that is known of
// that, with the numbers, flags and position that `as` has. Positions have to rise, but
// for packets that were put in. Not to be mixed
// with weir_window_stage() in one window.
WeirStageState weir_window_stage_as (WeirWindow *window, size_t len, const WeirPacket *as);

// ---- under the lock ----

// Makes what is staged readable, and lets go what exceeds the bounds. False if there was nothing,
// or if there is no memory for the index: then what is staged is lost, and counted in `lost`.
bool weir_window_publish (WeirWindow *window, uint64_t *lost);

// From the next packet on it holds a block less than now, though never less than
// WEIR_WINDOW_LIMIT_MIN, so that a block becomes free.
void weir_window_make_smaller (WeirWindow *window);

// What the tail would be after publishing. And instead of publishing: how many packets were staged,
// and are not any more.
int64_t weir_window_tail_after (const WeirWindow *window);
size_t weir_window_drop_stage (WeirWindow *window);

static inline const WeirPacket *
weir_window_at (const WeirWindow *window, int64_t position)
{
  return &window->index[(uint64_t) position & (window->capacity - 1)];
}

// The first join point from `position` on, or WEIR_NO_POSITION.
int64_t weir_window_next_join (const WeirWindow *window, int64_t position);

// The last join point up to `position`, or WEIR_NO_POSITION.
int64_t weir_window_join_before (const WeirWindow *window, int64_t position);

// The first packet that came after this time; the head, if there is none.
int64_t weir_window_after (const WeirWindow *window, int64_t arrival_ns);

// The beginning of the frame to which the packet before `end` belongs, or `end` after its last
// packet.
int64_t weir_window_edge (const WeirWindow *window, int64_t end);

// The same of the newest packet.
int64_t weir_window_live (const WeirWindow *window);

// For a window of packets with positions of another: lets those before `position` go; and finds the
// first one that is not before it, as its place in this window (the head, if there is none).
void weir_window_let_go (WeirWindow *window, int64_t position);
int64_t weir_window_find (const WeirWindow *window, int64_t position);

// ---- reading ----

// Packets of one block, back to back, that one send may take: at most WEIR_STAGE_PACKETS of them,
// and WEIR_PACKET_MAX bytes.
typedef struct {
  WeirBlock *block; // a reference
  int64_t first;
  size_t n;
  WeirPacket packets[WEIR_STAGE_PACKETS];
} WeirSpan;

// The packets from `position` on, which has to be in the window, up to `end` at most. Under the
// lock. The span is let go with weir_span_clear().
void weir_window_span (const WeirWindow *window, int64_t position, int64_t end, WeirSpan *span);
void weir_span_clear (WeirSpan *span); // without the lock

// Has what probably follows the span read from the file, so that whoever sends it does not wait for
// the disk. Without the lock.
void weir_span_read_ahead (const WeirSpan *span);

const uint8_t *weir_packet_data (const WeirPacket *packet);
