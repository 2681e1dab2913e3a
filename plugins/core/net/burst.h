// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A burst: packets that are published together and sent together.

#include <stddef.h>
#include <stdint.h>

#define WEIR_PACKET_MAX 65507 // bytes, the largest UDP payload over IPv4
#define WEIR_STAGE_PACKETS 64 // most packets in a burst

// Packets back to back. Packet i is the bytes from offset[i] to offset[i + 1] - 1 of `data`.
typedef struct {
  const uint8_t *data;
  size_t n;
  uint32_t offset[WEIR_STAGE_PACKETS + 1];
} WeirBurst;

// Returns the length of packet `i` in bytes.
static inline size_t
weir_burst_len (const WeirBurst *burst, size_t i)
{
  return burst->offset[i + 1] - burst->offset[i];
}
