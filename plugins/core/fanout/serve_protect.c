// SPDX-License-Identifier: LGPL-2.1-or-later
// Protects packets, such as by SRTP, for the one reader that has the key.
#include "fanout/serve_private.h"

// Numbers that are further from the next one, in packets, come from a jump of the stream's numbers.
// The reader does not get the jump: its cipher would use numbers again, or the two ends would
// disagree about how often they have wrapped.
//
// Numbers less than FARTHEST_BACK behind the next one are those of late packets, and of packets for
// which a socket had no room. A stream whose numbers begin anew there cannot be told from that: its
// packets get numbers that the cipher has used, and so the key stream twice unless their SSRC is
// another one.
#define FARTHEST_BACK 4096
#define FARTHEST_AHEAD 16384

// Reports whether a packet numbered `seq` may follow when `next` is the next number.
static bool
is_near (uint16_t seq, uint16_t next)
{
  int ahead = (int16_t) (uint16_t) (seq - next);

  return ahead > -FARTHEST_BACK && ahead < FARTHEST_AHEAD;
}

void
weir_serve_number (const Pass *pass, WeirReader *reader, uint64_t mask)
{
  const WeirSpan *span = &pass->server->hand.packets;
  uint16_t n_skipped = 0, seq, next;

  if (!reader->is_protected)
    return;
  for (size_t i = 0; i < span->n; i++) {
    if (!(mask >> i & 1)) {
      n_skipped++;
    } else if (span->packets[i].flags & WEIR_PACKET_RTP) {
      seq = (uint16_t) (span->packets[i].seq + reader->seq_delta - n_skipped);
      next = reader->protect.next_seq (reader->protect.data, seq);
      if (!reader->numbered || !is_near (seq, next))
        reader->seq_delta = (uint16_t) (reader->seq_delta + next - seq);
      reader->numbered = true;
      return;
    }
  }
}

void
weir_serve_note_sent (const Pass *pass, WeirReader *reader, const Load *loaded, size_t n)
{
  const Load *sealed = &pass->server->loads[SEALED];
  const WeirBurst *burst = &sealed->sender.burst;
  const WeirPacket *packets = pass->server->hand.packets.packets;

  if (!reader->protect.sent)
    return;
  for (size_t i = 0; i < n; i++) {
    if (packets[loaded->picked[sealed->picked[i]]].flags & WEIR_PACKET_RTP)
      reader->protect.sent (reader->protect.data, burst->data + burst->offset[i],
          weir_burst_len (burst, i), pass->now_ns);
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
    bool rtp = packets[loaded->picked[k]].flags & WEIR_PACKET_RTP;
    size_t len = reader->protect.protect (reader->protect.data, from->data + from->offset[k],
        weir_burst_len (from, k), rtp, pass->server->sealed + burst.offset[burst.n]);

    if (len == 0)
      continue;
    sealed->picked[burst.n] = (uint8_t) k;
    burst.offset[burst.n + 1] = burst.offset[burst.n] + (uint32_t) len;
    burst.n++;
  }
  weir_sender_load (&sealed->sender, &burst);
  return sealed;
}
