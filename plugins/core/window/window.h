// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The window: the recent packets of one stream within bounds, shared by all its readers. Each
// reader has its own cursor: the position of its next packet. Packets are numbered from 0 in order
// of arrival for the life of the window; the number is the position.
//
// Packets lie back to back in blocks, which are not written again once their packets are published.
// A sender holds a reference to the block that it sends from, so the writer never waits for
// senders: it drops the oldest packets and takes a new block. The size of a block follows the rate
// of the stream; the packets of a burst lie in one block. Memory is limited to the bounds below,
// one block, the unused ends of blocks, and the blocks being sent from. Blocks may lie in a file
// (blocks.h).
//
// The writer alone reserves, fills and stages packets, without a lock; other calls need the
// owner's lock unless said otherwise. Block references are atomic.

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/layers.h"
#include "net/burst.h"
#include "window/blocks.h"

#define WEIR_WINDOW_BYTES_MIN WEIR_BLOCK_BYTES
#define WEIR_WINDOW_LIMIT_MIN ((size_t) 8 << 20) // least limit of a window whose disk is full
#define WEIR_NO_POSITION INT64_MAX

typedef enum {
  WEIR_PACKET_RTP = 1 << 0,         // RTP; else opaque bytes or RTCP
  WEIR_PACKET_MARKER = 1 << 1,      // ends a frame
  WEIR_PACKET_START = 1 << 2,       // begins a frame
  WEIR_PACKET_JOIN = 1 << 3,        // a decoder can start here
  WEIR_PACKET_KEY = 1 << 4,         // of a key frame, or before the first key frame of the stream
  WEIR_PACKET_DISCARDABLE = 1 << 5, // no other frame needs it
  WEIR_PACKET_TOLD = 1 << 6,        // its layer was given with it, with these two (see WeirLayer):
  WEIR_PACKET_SWITCH_UP = 1 << 7,
  WEIR_PACKET_ENTER = 1 << 8,
  WEIR_PACKET_EXTRA = 1 << 9, // was inserted: has the position of the next packet
} WeirPacketFlags;

typedef struct {
  WeirWindowBlock *block;
  uint32_t offset, length;
  int64_t arrival_ns;
  int64_t rtp_time; // unwrapped, in ticks of the clock rate
  int64_t position; // position in this window, or in its source window (see weir_window_stage_as())
  uint16_t seq;
  uint16_t flags;
  uint8_t spatial, quality, temporal;
} WeirPacket;

// Upper bounds of the window.
typedef struct {
  size_t bytes;
  size_t packets;
  int64_t time_ns;
  // The time bound keeps the newest join point and all packets after it, for new readers.
  bool keep_join;
} WeirWindowBounds;

typedef enum {
  WEIR_STAGE_MORE,   // the frame is not complete
  WEIR_STAGE_FRAME,  // the packet ended a frame
  WEIR_STAGE_URGENT, // no frame (RTCP, or not RTP): publish now
  WEIR_STAGE_FULL    // the stage is full: publish
} WeirStageState;

typedef struct {
  WeirWindowBounds bounds;
  // Packets from tail to head - 1 are present. Positions never go back.
  int64_t tail, head;
  int64_t last_join;   // WEIR_NO_POSITION if the window has no join point
  int64_t newest_time; // highest RTP time from the newest join point on
  size_t bytes;        // bytes of the packets present
  size_t limit;        // limit of `bytes` since weir_window_make_smaller(), else SIZE_MAX
  uint64_t n_opaque;   // packets that were neither RTP nor RTCP, ever

  // Private from here on. A ring: the packet at position p is index[p & (capacity - 1)].
  WeirPacket *index;
  size_t capacity;

  // For the writer only.
  WeirBlockFile *file; // a reference, or NULL
  WeirWindowBlock *block;
  size_t block_used, block_size; // bytes; block_size: of the next block
  uint64_t n_blocks;             // blocks taken, ever
  // Bytes that came in this time, to measure the rate.
  uint64_t measured_bytes;
  int64_t measured_from_ns, measured_to_ns;
  WeirPacket *stage;
  size_t stage_size, n_staged, bytes_staged;
  int64_t staged_ns; // arrival of the first staged packet
  WeirLayers layers;
  int64_t frame_start; // start of the frame in progress
  bool in_frame, frame_key, frame_join, seen_key;
  int64_t late_join;     // published packet to be marked as a join point at the next publish
  int64_t last_rtp_time; // for unwrapping
  int64_t frame_rtp_time;
} WeirWindow;

// Initialises a window, which stays the caller's. `codec` says how join points are recognised.
// Returns 0 or -ENOMEM. Free the window's contents with weir_window_free().
int weir_window_init (WeirWindow *window, WeirWindowBounds bounds, WeirCodec codec);
void weir_window_free (WeirWindow *window);

// Removes all packets. Positions continue.
void weir_window_flush (WeirWindow *window);

// Takes blocks from `file` from now on; NULL: from memory. The window keeps a reference. Blocks
// that the file has no room for come from memory: make the window smaller then. Only while the
// window is empty.
void weir_window_set_file (WeirWindow *window, WeirBlockFile *file);

// ---- the writer, without the lock ----

// Sets the codec of the payloads from the next packet on.
void weir_window_set_codec (WeirWindow *window, WeirCodec codec);

// Returns room for a packet of `len` bytes, from 1 to WEIR_PACKET_MAX; NULL if there is no memory,
// if `len` is out of range, or if WEIR_STAGE_PACKETS are staged.
uint8_t *weir_window_reserve (WeirWindow *window, size_t len);

// Stages the packet of `len` bytes written into the reserved room, which arrived at `now_ns`.
// `layer` is its layer if it is known; NULL: read it from the payload. A packet that is neither RTP
// nor RTCP is a join point if `layer` has `keyframe`.
WeirStageState weir_window_stage (
    WeirWindow *window, size_t len, const WeirLayer *layer, int64_t now_ns);

// Stages a packet that was made from a packet of another window. Copies all its properties from
// `as`, with the numbers, flags and position there. Positions must rise, except for inserted
// packets. Do not mix with weir_window_stage() in one window.
WeirStageState weir_window_stage_as (WeirWindow *window, size_t len, const WeirPacket *as);

// ---- under the lock ----

// Publishes the staged packets and drops old packets beyond the bounds. Returns false if nothing
// was staged, or if there was no memory for the index: then the staged packets are dropped and
// counted in `lost`.
bool weir_window_publish (WeirWindow *window, uint64_t *lost);

// Reduces `limit` to one block less than the window holds now, but not below WEIR_WINDOW_LIMIT_MIN,
// so that a block becomes free.
void weir_window_make_smaller (WeirWindow *window);

// Drops the packets before `position`, which must be in the window. Frees memory of the index if it
// was far too large for the packets before.
void weir_window_trim (WeirWindow *window, int64_t position);

// weir_window_tail_after() returns the tail that the window would have after publishing.
// weir_window_drop_stage() drops the staged packets and returns how many there were.
int64_t weir_window_tail_after (const WeirWindow *window);
size_t weir_window_drop_stage (WeirWindow *window);

// Returns the packet at `position`, which must be in the window.
static inline const WeirPacket *
weir_window_at (const WeirWindow *window, int64_t position)
{
  return &window->index[(uint64_t) position & (window->capacity - 1)];
}

// Returns the first join point at or after `position`, or WEIR_NO_POSITION.
int64_t weir_window_next_join (const WeirWindow *window, int64_t position);

// Returns the last join point at or before `position`, or WEIR_NO_POSITION.
int64_t weir_window_join_before (const WeirWindow *window, int64_t position);

// Returns the first packet that arrived after `arrival_ns`, or the head if there is none.
int64_t weir_window_after (const WeirWindow *window, int64_t arrival_ns);

// Returns the start of the frame that the packet before `end` belongs to, or `end` if that packet
// ends its frame.
int64_t weir_window_edge (const WeirWindow *window, int64_t end);

// Returns the live edge: weir_window_edge() of the head.
int64_t weir_window_live (const WeirWindow *window);

// Returns the first RTP packet at or after `position`, or NULL if it is not among the next 64
// packets.
const WeirPacket *weir_window_next_rtp (const WeirWindow *window, int64_t position);

// Returns the newest RTP packet before `position`, or `position` if it is not among the 64 packets
// before.
int64_t weir_window_rtp_before (const WeirWindow *window, int64_t position);

// Finds the sequence number that the first RTP packet at or after `position` has or will have.
// Returns false if no RTP packet is near `position`.
bool weir_window_seq_at (const WeirWindow *window, int64_t position, uint16_t *seq);

// For windows made with weir_window_stage_as(): weir_window_drop_before() drops the packets whose
// position is before `position`. weir_window_find() returns the index in this window of the first
// packet whose position is not before `position`, or the head.
void weir_window_drop_before (WeirWindow *window, int64_t position);
int64_t weir_window_find (const WeirWindow *window, int64_t position);

// ---- reading ----

// Adjacent packets of one block that fit into one send: at most WEIR_STAGE_PACKETS packets and
// WEIR_PACKET_MAX bytes.
typedef struct {
  WeirWindowBlock *block; // a reference
  int64_t first;
  size_t n;
  WeirPacket packets[WEIR_STAGE_PACKETS];
} WeirSpan;

// Fills `span` with the packets from `position`, which must be in the window, up to `end` at most.
// Under the lock. Release the span with weir_span_clear().
void weir_window_span (const WeirWindow *window, int64_t position, int64_t end, WeirSpan *span);
void weir_span_clear (WeirSpan *span); // without the lock

// Tells the kernel to read the packets that probably follow the span from the file, so that the
// sender does not wait for the disk. Without the lock.
void weir_span_read_ahead (const WeirSpan *span);

// Returns the packet's bytes, valid while its block is referenced.
const uint8_t *weir_packet_data (const WeirPacket *packet);
