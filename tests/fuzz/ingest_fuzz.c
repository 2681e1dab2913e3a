// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes a received track. The input is a row of datagrams, each behind three bytes: the sender
// (bits 0 and 1), whether it came to the RTCP port (bit 2) and a long wait before it (bit 3); the
// ms before it; and its length.

#include <arpa/inet.h>
#include <string.h>

#include "bits/bytes.h"
#include "fuzz.h"
#include "ingest/track.h"

#define MS INT64_C (1000000)
#define WINDOW 16

typedef struct {
  bool ordered;
  uint64_t n, run;
  int64_t seq;
} Receiver;

static void
on_packet (void *data, const WeirIngestPacket *packet)
{
  Receiver *receiver = data;

  require (packet->rtp.payload_offset + packet->rtp.payload_length <= packet->len);
  require (packet->run >= receiver->run);
  require (!receiver->ordered || packet->run > receiver->run || packet->seq > receiver->seq);
  receiver->n++;
  receiver->run = packet->run;
  receiver->seq = packet->seq;
  memset (packet->data, 0xff, packet->len); // the bytes are the callback's
}

static void
check_sums (const WeirTrack *track, const Receiver *receiver)
{
  WeirIngestStats stats;
  uint64_t sum;

  weir_track_stats (track, &stats);
  sum = stats.delivered + stats.rtcp + stats.held;
  for (int i = 0; i < WEIR_INGEST_N_DROPS; i++)
    sum += stats.dropped[i];
  require (sum == stats.datagrams && stats.delivered == receiver->n && stats.held < WINDOW);
}

static void
take (WeirTrack *track, const uint8_t *data, size_t len, uint8_t flags, int64_t now_ns)
{
  WeirAddress sender = { .v4 = { .sin_family = AF_INET,
                             .sin_addr.s_addr = htonl (0xc0000201 + (flags >> 1 & 1)),
                             .sin_port = htons ((uint16_t) (5000 + (flags & 1))) } };
  const WeirAddress *from = track->settings.interleaved ? NULL : &sender;
  uint8_t *copy = malloc (len ? len : 1); // of the datagram's size, for sanitizers
  uint8_t rtcp[WEIR_TRACK_RTCP_MAX];

  require (copy != NULL);
  memcpy (copy, data, len);
  if (flags & 4)
    weir_track_take_rtcp (track, from, copy, len, now_ns);
  else
    weir_track_take (track, from, copy, len, now_ns, now_ns);
  free (copy);
  if (weir_track_due (track) <= now_ns) {
    weir_track_expire (track, now_ns);
    require (weir_track_write_rtcp (track, now_ns, rtcp) <= sizeof rtcp);
  }
}

static void
run (const uint8_t *data, size_t size, bool ordered, bool steady, bool interleaved)
{
  const WeirTrackSettings settings = { .reorder = { ordered ? WINDOW : 0, 2000, 20 * MS },
    .rtcp_mux = true,
    .steady = steady,
    .interleaved = interleaved,
    .key = WEIR_KEY_FIR,
    .report_interval_ns = 50 * MS,
    .ssrc = 7,
    .cname = "fuzz" };
  const WeirTrackOps ops = { .packet = on_packet };
  WeirBytes bytes = weir_bytes (data, size);
  Receiver receiver = { .ordered = ordered };
  int64_t now_ns = 0;
  WeirTrack track;
  const uint8_t *datagram;
  uint8_t flags, ms, len;

  weir_track_init (&track, &settings, &ops, &receiver);
  while (weir_bytes_u8 (&bytes, &flags) && weir_bytes_u8 (&bytes, &ms)
         && weir_bytes_u8 (&bytes, &len) && weir_bytes_take (&bytes, len, &datagram)) {
    now_ns += (flags & 8 ? 100 : 1) * ms * MS;
    take (&track, datagram, len, flags, now_ns);
    check_sums (&track, &receiver);
    if (ms % 16 == 0)
      weir_track_ask_key (&track);
  }
  weir_track_clear (&track);
  check_sums (&track, &receiver);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  run (data, size, false, false, false);
  run (data, size, true, false, false);
  run (data, size, true, true, false);
  run (data, size, false, true, true);
  return 0;
}
