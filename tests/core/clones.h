// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What a clone of a message is: its packets, with the numbers of their reader.

#include <netinet/udp.h>
#include <string.h>

#include "net/burst.h"
#include "net/clones.h"
#include "tap.h"

#define CLONED_RTP 8 // bytes of a packet up to the end of its timestamp

typedef struct {
  uint8_t bytes[WEIR_PACKET_MAX];
  size_t len;
} ClonedPacket;

static inline uint16_t
cloned_read_16 (const uint8_t *at)
{
  return (uint16_t) (at[0] << 8 | at[1]);
}

static inline void
cloned_write_16 (uint8_t *at, uint16_t value)
{
  at[0] = (uint8_t) (value >> 8);
  at[1] = (uint8_t) value;
}

static inline void
cloned_renumber (ClonedPacket *packet, uint16_t picture_at, const WeirCloneTarget *target)
{
  uint8_t *bytes = packet->bytes, *id = bytes + (picture_at & ~WEIR_CLONES_WIDE_ID);
  uint32_t time = (uint32_t) cloned_read_16 (bytes + 4) << 16 | cloned_read_16 (bytes + 6);

  CHECK (packet->len >= CLONED_RTP);
  cloned_write_16 (bytes + 2, (uint16_t) (cloned_read_16 (bytes + 2) + target->seq_ahead));
  time += target->time_ahead;
  cloned_write_16 (bytes + 4, (uint16_t) (time >> 16));
  cloned_write_16 (bytes + 6, (uint16_t) time);
  if (picture_at & WEIR_CLONES_WIDE_ID)
    cloned_write_16 (id, (uint16_t) ((cloned_read_16 (id) + target->picture_ahead) | 0x8000));
  else if (picture_at)
    *id = (*id + target->picture_ahead) & 0x7f;
}

// Copies packet `i` of a message, as it reaches the target.
static inline void
clone_packet (
    const WeirCloneMessage *message, size_t i, const WeirCloneTarget *target, ClonedPacket *packet)
{
  const struct iovec *iov = message->header->msg_iov;
  size_t size = iov->iov_len, at;
  uint16_t segment;

  if (message->n_packets > 1) {
    memcpy (&segment, CMSG_DATA (CMSG_FIRSTHDR (message->header)), sizeof segment);
    size = segment;
  }
  CHECK_INT (message->n_packets, (iov->iov_len + size - 1) / size);
  at = i * size;
  packet->len = iov->iov_len - at < size ? iov->iov_len - at : size;
  memcpy (packet->bytes, (const uint8_t *) iov->iov_base + at, packet->len);
  if (message->rtp >> i & 1)
    cloned_renumber (packet, message->picture_at ? message->picture_at[i] : 0, target);
}

// Checks that the targets are in order, and that the message is not too long for their numbers.
static inline void
check_clones (const WeirCloneMessage *message, const WeirCloneTarget *targets, size_t n)
{
  for (size_t t = 1; t < n; t++)
    CHECK (!weir_clone_is_plain (&targets[t]) || weir_clone_is_plain (&targets[t - 1]));
  if (!weir_clone_is_plain (&targets[n - 1]) && message->n_packets > 1)
    CHECK (message->header->msg_iov->iov_len <= WEIR_CLONES_OWN_BYTES);
}
