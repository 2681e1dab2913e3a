// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A burst of packets, back to back in one piece of memory, as a send to each reader wants them.
//
// A batch ends with the RTP marker bit (the frame is whole), when it is full, or when its owner
// finds that it has waited long enough since `opened_ns`. It holds no more bytes than one UDP
// datagram, so that a batch is never larger than what one segmented send takes.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_BATCH_PACKETS 64
#define WEIR_BATCH_BYTES 65507 // the largest UDP payload over IPv4

typedef enum {
  WEIR_BATCH_OPEN,   // there is room, and more of the frame to come
  WEIR_BATCH_FRAME,  // the packet ended a frame
  WEIR_BATCH_URGENT, // nothing tells that more is to come (RTCP, or not RTP at all): don't wait
  WEIR_BATCH_FULL    // no room for another packet of any size
} WeirBatchState;

typedef struct {
  size_t n;
  uint32_t offset[WEIR_BATCH_PACKETS + 1]; // offset[n] is where the bytes end
  int64_t opened_ns;                       // when the first packet came
  uint8_t data[WEIR_BATCH_BYTES];
} WeirBatch;

void weir_batch_clear (WeirBatch *batch);

// Room for a packet of `len` bytes at the end of the batch, or NULL if it doesn't fit: send what is
// there and ask another batch. A packet of 1 to WEIR_BATCH_BYTES fits every empty batch.
uint8_t *weir_batch_reserve (WeirBatch *batch, size_t len);

// Takes the packet written into the reserved room.
WeirBatchState weir_batch_commit (WeirBatch *batch, size_t len, int64_t now_ns);

// Both in one, for a packet that lies in one piece: a WeirBatchState, -ENOSPC if the packet has to
// go into another batch, -EMSGSIZE if it fits none, -EINVAL if it is empty.
int weir_batch_add (WeirBatch *batch, const uint8_t *packet, size_t len, int64_t now_ns);

static inline size_t
weir_batch_bytes (const WeirBatch *batch)
{
  return batch->offset[batch->n];
}

static inline size_t
weir_batch_len (const WeirBatch *batch, size_t i)
{
  return batch->offset[i + 1] - batch->offset[i];
}

// When a batch that is not empty has to be sent, whole or not.
static inline int64_t
weir_batch_due_ns (const WeirBatch *batch, int64_t max_delay_ns)
{
  return batch->opened_ns > INT64_MAX - max_delay_ns ? INT64_MAX : batch->opened_ns + max_delay_ns;
}
