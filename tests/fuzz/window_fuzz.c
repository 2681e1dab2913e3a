// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the window of recent packets. The input is a byte that chooses the codec, a byte of
// bounds, then packets: a byte of flags (bit 0: RTP numbers that continue; bit 1: publish), the ms
// since the packet before it, its length, and its bytes.

#include <string.h>

#include "bits/bytes.h"
#include "fuzz.h"
#include "rtp/rtp.h"
#include "window/window.h"

#define MS INT64_C (1000000)

static void
check (const WeirWindow *window)
{
  size_t bytes = 0;

  require (window->tail <= window->head);
  for (int64_t at = window->tail; at < window->head; at++) {
    const WeirPacket *packet = weir_window_at (window, at);

    require (packet->block && packet->length > 0);
    bytes += packet->length;
  }
  require (bytes == window->bytes);
  require (weir_window_live (window) <= window->head);
}

static void
look_up (const WeirWindow *window, int64_t position, int64_t arrival_ns)
{
  int64_t next = weir_window_next_join (window, position);
  int64_t before = weir_window_join_before (window, position);
  uint16_t seq;

  require (next == WEIR_NO_POSITION
           || (next >= position && weir_window_at (window, next)->flags & WEIR_PACKET_JOIN));
  require (before == WEIR_NO_POSITION
           || (before <= position && weir_window_at (window, before)->flags & WEIR_PACKET_JOIN));
  require (weir_window_after (window, arrival_ns) <= window->head);
  weir_window_next_rtp (window, position);
  weir_window_rtp_before (window, position);
  weir_window_seq_at (window, position, &seq);
  weir_window_edge (window, position);
}

static void
read_span (const WeirWindow *window, int64_t position)
{
  WeirSpan span;
  volatile uint8_t last;

  if (position >= window->head)
    return;
  weir_window_span (window, position, window->head, &span);
  require (span.n > 0 && span.first == position);
  for (size_t i = 0; i < span.n; i++)
    last = weir_packet_data (&span.packets[i])[span.packets[i].length - 1];
  (void) last;
  weir_span_clear (&span);
}

static void
stage (WeirWindow *window, const uint8_t *data, size_t len, uint16_t seq, bool numbered,
    int64_t now_ns)
{
  uint8_t *room = weir_window_reserve (window, len);

  if (!room)
    return;
  memcpy (room, data, len);
  if (numbered && len >= WEIR_RTP_HEADER) {
    room[0] = 0x80;
    weir_rtp_set_seq (room, seq);
    weir_rtp_set_timestamp (room, UINT32_MAX - 9000 + (uint32_t) (now_ns / MS * 90));
  }
  weir_window_stage (window, len, NULL, now_ns);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  static const WeirCodec codecs[] = { WEIR_CODEC_H264, WEIR_CODEC_H265, WEIR_CODEC_VP8,
    WEIR_CODEC_VP9, WEIR_CODEC_AV1, WEIR_CODEC_MPV };
  WeirBytes b = weir_bytes (data, size);
  uint8_t codec, bounds, flags, ms, len;
  const uint8_t *packet;
  uint16_t seq = 65530;
  int64_t now_ns = MS;
  WeirWindow window;
  uint64_t lost = 0;

  if (!weir_bytes_u8 (&b, &codec) || !weir_bytes_u8 (&b, &bounds))
    return 0;
  require (
      weir_window_init (&window,
          (WeirWindowBounds) { WEIR_WINDOW_BYTES_MIN, 1 + bounds % 32, bounds * MS, bounds & 0x80 },
          codecs[codec % 6])
      == 0);
  while (weir_bytes_u8 (&b, &flags) && weir_bytes_u8 (&b, &ms) && weir_bytes_u8 (&b, &len)
         && weir_bytes_take (&b, len, &packet)) {
    now_ns += ms * MS;
    stage (&window, packet, len, seq++, flags & 1, now_ns);
    if (flags & 2)
      weir_window_publish (&window, &lost);
    if (flags & 0x80)
      weir_window_trim (&window, window.head - (window.head > window.tail));
    check (&window);
    look_up (&window, window.tail + flags % 32, now_ns - bounds * MS);
    read_span (&window, window.tail + flags % 32);
  }
  require (lost == 0);
  weir_window_flush (&window);
  weir_window_free (&window);
  return 0;
}
