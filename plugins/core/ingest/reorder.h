// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Restores the order of packets by their unwrapped sequence numbers. Packets in order pass without
// a copy. A packet behind a gap is copied and held until the gap is filled, or until the window
// gives the gap up: because the packet waited for `time_ns`, or because the window is full.
//
// For one thread at a time. A window allocates no memory before the first gap.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ingest/packet.h"
#include "run/clock.h"

#define WEIR_REORDER_PACKETS_MAX 512

typedef struct {
  size_t packets;  // from 0 to WEIR_REORDER_PACKETS_MAX; 0 turns reordering off
  size_t bytes;    // bytes held; one packet may exceed it
  int64_t time_ns; // 0 turns reordering off
} WeirReorderLimits;

typedef struct {
  WeirReorderLimits limits;
  bool begun;
  int64_t next;            // sequence number of the next packet in order
  WeirIngestPacket *slots; // limits.packets of them; a packet is at seq % limits.packets
  size_t n_held, bytes_held;
  int64_t due_ns;      // when the gap at `next` is given up; WEIR_NEVER without a held packet
  int64_t skip_to;     // gaps before this number are given up for lack of room
  uint64_t skipped;    // packets given up since `missing` was last set
  size_t wanted_bytes; // room to make for the next packet
  uint8_t *released;   // bytes of the packet that was popped last
} WeirReorder;

typedef enum {
  WEIR_REORDER_PASS,      // in order: deliver the packet now, then pop
  WEIR_REORDER_HELD,      // copied
  WEIR_REORDER_LATE,      // its gap was given up, or it was delivered
  WEIR_REORDER_DUPLICATE, // held already
  WEIR_REORDER_NO_MEMORY, // out of memory
} WeirReorderPut;

// Initialises a window that is turned on by its limits. Free its memory with weir_reorder_clear().
void weir_reorder_init (WeirReorder *self, const WeirReorderLimits *limits);

// Reports whether the limits turn reordering on. If not, do not call the functions below but
// weir_reorder_clear().
bool weir_reorder_is_on (const WeirReorder *self);

// Drops the held packets, frees the memory and resets the window. Returns the number of packets
// dropped.
size_t weir_reorder_clear (WeirReorder *self);

// Makes room for a packet of `len` bytes with the number `seq`. Call it before weir_reorder_put(),
// and pop between the two.
void weir_reorder_make_room (WeirReorder *self, int64_t seq, size_t len);

// Puts a packet in. Sets `packet->missing` if the packet passes.
WeirReorderPut weir_reorder_put (WeirReorder *self, WeirIngestPacket *packet);

// Moves the next packet that is due at `now_ns` to `out`, with the number of packets given up
// before it. Its bytes stay valid until the next call. Returns false if no packet is due.
bool weir_reorder_pop (WeirReorder *self, int64_t now_ns, WeirIngestPacket *out);

// Returns the time at which a pop can give a packet without another put; WEIR_NEVER if none is
// held.
int64_t weir_reorder_due (const WeirReorder *self);
