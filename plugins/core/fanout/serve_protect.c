// SPDX-License-Identifier: LGPL-2.1-or-later
// Protects packets, such as by SRTP, for the one reader that has the key.
#include <string.h>

#include "fanout/serve_private.h"

void
weir_serve_number (const Pass *pass, WeirReader *reader, uint64_t mask)
{
  const WeirSpan *span = &pass->server->hand.packets;
  uint16_t n_skipped = 0, seq;

  if (!reader->is_protected || reader->numbered)
    return;
  for (size_t i = 0; i < span->n; i++) {
    if (!(mask >> i & 1)) {
      n_skipped++;
    } else if (span->packets[i].flags & WEIR_PACKET_RTP) {
      seq = (uint16_t) (span->packets[i].seq + reader->seq_delta - n_skipped);
      reader->seq_delta += (uint16_t) (reader->protect.next_seq (reader->protect.data, seq) - seq);
      reader->numbered = true;
      return;
    }
  }
}

Load *
weir_serve_protect (Pass *pass, const WeirReader *reader, const Load *loaded)
{
  const WeirBurst *from = &loaded->sender.burst;
  const WeirPacket *packets = pass->server->hand.packets.packets;
  Load *sealed = &pass->server->loads[SEALED];
  WeirBurst burst = { .data = pass->server->sealed };

  for (size_t k = 0; k < from->n; k++) {
    uint8_t *packet = pass->server->sealed + burst.offset[burst.n];
    size_t len = weir_burst_len (from, k);

    memcpy (packet, from->data + from->offset[k], len);
    len = reader->protect.protect (
        reader->protect.data, packet, len, packets[loaded->picked[k]].flags & WEIR_PACKET_RTP);
    if (len == 0)
      continue;
    sealed->picked[burst.n] = (uint8_t) k;
    burst.offset[burst.n + 1] = burst.offset[burst.n] + (uint32_t) len;
    burst.n++;
  }
  weir_sender_load (&sealed->sender, &burst);
  return sealed;
}
