// SPDX-License-Identifier: LGPL-2.1-or-later
#include "batch.h"

#include <errno.h>
#include <string.h>

#include "rtp.h"

void
weir_batch_clear (WeirBatch *batch)
{
  batch->n = 0;
  batch->offset[0] = 0;
  batch->opened_ns = 0;
}

uint8_t *
weir_batch_reserve (WeirBatch *batch, size_t len)
{
  size_t used = weir_batch_bytes (batch);

  if (batch->n == WEIR_BATCH_PACKETS || len == 0 || len > WEIR_BATCH_BYTES - used)
    return NULL;
  return batch->data + used;
}

WeirBatchState
weir_batch_commit (WeirBatch *batch, size_t len, int64_t now_ns)
{
  const uint8_t *packet = batch->data + weir_batch_bytes (batch);
  WeirRtp rtp;

  if (batch->n == 0)
    batch->opened_ns = now_ns;
  batch->offset[batch->n + 1] = (uint32_t) (batch->offset[batch->n] + len);
  batch->n++;

  if (weir_rtp_is_rtcp (packet, len) || weir_rtp_parse (packet, len, &rtp) < 0)
    return WEIR_BATCH_URGENT;
  if (rtp.marker)
    return WEIR_BATCH_FRAME;
  if (batch->n == WEIR_BATCH_PACKETS || weir_batch_bytes (batch) == WEIR_BATCH_BYTES)
    return WEIR_BATCH_FULL;
  return WEIR_BATCH_OPEN;
}

int
weir_batch_add (WeirBatch *batch, const uint8_t *packet, size_t len, int64_t now_ns)
{
  uint8_t *room;

  if (len == 0)
    return -EINVAL;
  if (len > WEIR_BATCH_BYTES)
    return -EMSGSIZE;
  if (!(room = weir_batch_reserve (batch, len)))
    return -ENOSPC;
  memcpy (room, packet, len);
  return weir_batch_commit (batch, len, now_ns);
}
