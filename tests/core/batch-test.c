// SPDX-License-Identifier: LGPL-2.1-or-later
#include "batch.h"

#include <errno.h>
#include <stdlib.h>

#include "tap.h"

static WeirBatch batch;
static uint8_t packet[70000];

static void
make_packet (uint8_t first, uint8_t second)
{
  for (size_t i = 0; i < sizeof packet; i++)
    packet[i] = (uint8_t) (i * 7);
  packet[0] = first;
  packet[1] = second;
}

// What one packet, alone in a batch, makes of it.
static void
ends_where_it_should (void)
{
  static const struct {
    uint8_t first, second;
    size_t len;
    int result;
  } cases[] = {
    { 0x80, 96, 1200, WEIR_BATCH_OPEN },
    { 0x80, 96 | 0x80, 1200, WEIR_BATCH_FRAME },
    { 0x80, 200, 28, WEIR_BATCH_URGENT },
    { 0x80, 192, 28, WEIR_BATCH_URGENT },
    { 0x80, 223, 28, WEIR_BATCH_URGENT },
    { 0x80, 224, 28, WEIR_BATCH_FRAME },
    { 0x47, 96, 1316, WEIR_BATCH_URGENT },
    { 0x80, 96, 11, WEIR_BATCH_URGENT },
    { 0x80, 96, 1, WEIR_BATCH_URGENT },
    { 0x80, 96, 65507, WEIR_BATCH_FULL },
    { 0x80, 96, 65506, WEIR_BATCH_OPEN },
    { 0x80, 96, 65508, -EMSGSIZE },
    { 0x80, 96, 0, -EINVAL },
  };

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    make_packet (cases[i].first, cases[i].second);
    weir_batch_clear (&batch);
    CHECK_INT (weir_batch_add (&batch, packet, cases[i].len, 5), cases[i].result);
    CHECK_INT (batch.n, cases[i].result >= 0);
  }
}

static void
holds_64_packets (void)
{
  make_packet (0x80, 96);
  weir_batch_clear (&batch);
  for (int i = 0; i < 63; i++)
    CHECK_INT (weir_batch_add (&batch, packet, 100, 1000 + i), WEIR_BATCH_OPEN);
  CHECK_INT (weir_batch_add (&batch, packet, 100, 2000), WEIR_BATCH_FULL);
  CHECK_INT (weir_batch_add (&batch, packet, 1, 2000), -ENOSPC);
  CHECK_INT (batch.n, 64);
  CHECK_INT (batch.opened_ns, 1000);
  CHECK_INT (weir_batch_due_ns (&batch, 500), 1500);
  CHECK (weir_batch_due_ns (&batch, INT64_MAX) == INT64_MAX);
}

static void
holds_one_datagram (void)
{
  make_packet (0x80, 96);
  weir_batch_clear (&batch);
  for (int i = 0; i < 46; i++)
    CHECK_INT (weir_batch_add (&batch, packet, 1400, 1), WEIR_BATCH_OPEN);
  CHECK_INT (weir_batch_add (&batch, packet, 1400, 1), -ENOSPC);
  CHECK_INT (weir_batch_add (&batch, packet, 65507 - 46 * 1400, 1), WEIR_BATCH_FULL);
  CHECK_INT (weir_batch_bytes (&batch), 65507);
}

static void
keeps_packets_back_to_back (void)
{
  size_t at = 0;

  srand (3);
  make_packet (0x80, 96);
  weir_batch_clear (&batch);
  for (size_t i = 0; i < 40; i++) {
    size_t len = 12 + (size_t) rand () % 1400;

    packet[3] = (uint8_t) i;
    CHECK (weir_batch_add (&batch, packet, len, 1) >= 0);
    CHECK_INT (batch.offset[i], at);
    CHECK_INT (weir_batch_len (&batch, i), len);
    CHECK (memcmp (batch.data + at, packet, len) == 0);
    at += len;
  }
  CHECK_INT (weir_batch_bytes (&batch), at);
}

int
main (void)
{
  RUN (ends_where_it_should);
  RUN (holds_64_packets);
  RUN (holds_one_datagram);
  RUN (keeps_packets_back_to_back);
  return tap_done ();
}
