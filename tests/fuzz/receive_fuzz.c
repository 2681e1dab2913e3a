// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes what a publisher over WebRTC sends: all that reads its decrypted packets, and the feedback
// that they lead to. The input is a row of packets, each behind three bytes: whether it is RTCP
// (bit 0), whether a keyframe is wanted (bit 1) and a long wait before it (bit 2); the ms before
// it; and its length.

#include <errno.h>
#include <string.h>

#include "bits/bytes.h"
#include "fuzz.h"
#include "rtp/rtcp_read.h"
#include "rtp/rtp.h"
#include "webrtc/receive.h"

#define MS INT64_C (1000000)
#define ROUNDS 16 // more packets of feedback than one packet can lead to

static const WeirReceiveSettings settings = {
  .tracks = {
    { "0", { { 111, 0, WEIR_CODEC_AUDIO, 48000 } }, 1, false, false },
    { "1", { { 102, 103, WEIR_CODEC_H264, 90000 }, { 96, 97, WEIR_CODEC_VP8, 90000 } }, 2, true,
        true },
    { "2", { { 102, 103, WEIR_CODEC_H264, 90000 }, { 45, 0, WEIR_CODEC_AV1, 90000 } }, 2, false,
        true },
  },
  .n_tracks = 3,
  .mid_id = 4,
  .twcc_id = 5,
  .window_ns = 300 * MS,
  .ssrc = 7,
  .cname = "fuzz",
};

static void
check_media (const WeirReceived *got, const uint8_t *data, size_t len)
{
  WeirRtp rtp;

  require (got->kind < WEIR_RECEIVE_KINDS);
  if (got->kind != WEIR_RECEIVE_MEDIA)
    return;
  require (got->track < settings.n_tracks);
  require (got->data >= data && got->data + got->len == data + len);
  require (weir_rtp_parse (got->data, got->len, &rtp) == 0);
  require (rtp.extension_length == 0 && rtp.pt != 103 && rtp.pt != 97);
}

static void
take (WeirReceive *self, const uint8_t *data, size_t len, bool rtcp, int64_t now_ns)
{
  uint8_t *copy = malloc (len ? len : 1); // of the packet's size, for sanitizers
  WeirReceived got;
  int taken;

  require (copy != NULL);
  memcpy (copy, data, len);
  if (rtcp) {
    taken = weir_receive_take_rtcp (self, copy, len, now_ns);
    require (taken == 0 || taken == -EBADMSG);
  } else {
    weir_receive_take (self, copy, len, now_ns, &got);
    check_media (&got, copy, len);
  }
  free (copy);
}

static void
write_feedback (WeirReceive *self, int64_t now_ns)
{
  WeirRtcpReport report;
  unsigned n = 0;
  size_t len;

  do {
    uint8_t *out = malloc (WEIR_RECEIVE_RTCP_MAX); // of this size, for sanitizers

    require (out != NULL);
    len = weir_receive_write_rtcp (self, now_ns, out);
    require (len <= WEIR_RECEIVE_RTCP_MAX);
    require (len == 0 || (weir_rtcp_read (out, len, &report) == 0 && report.ssrc == 7));
    free (out);
  } while (len > 0 && ++n < ROUNDS);
  require (len == 0 && weir_receive_due (self) > now_ns);
}

static void
check_sums (const WeirReceive *self, uint64_t n)
{
  WeirReceiveStats stats;
  uint64_t sum = 0;

  weir_receive_stats (self, &stats);
  for (int i = 0; i < WEIR_RECEIVE_KINDS; i++)
    sum += stats.packets[i];
  require (sum == n);
  require (stats.retransmitted <= stats.packets[WEIR_RECEIVE_MEDIA]);
  require (stats.recovered <= stats.packets[WEIR_RECEIVE_MEDIA] && stats.round_trip_ns >= 0);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  WeirBytes b = weir_bytes (data, size);
  uint8_t flags, ms, len;
  const uint8_t *packet;
  int64_t now_ns = 0;
  WeirReceive *self;
  uint64_t n = 0;

  require (weir_receive_new (&settings, &self) == 0);
  while (weir_bytes_u8 (&b, &flags) && weir_bytes_u8 (&b, &ms) && weir_bytes_u8 (&b, &len)
         && weir_bytes_take (&b, len, &packet)) {
    now_ns += (flags & 4 ? 100 : 1) * ms * MS;
    if (flags & 2)
      weir_receive_ask_key (self, len & 3);
    take (self, packet, len, flags & 1, now_ns);
    n += !(flags & 1);
    if (weir_receive_due (self) <= now_ns)
      write_feedback (self, now_ns);
    check_sums (self, n);
  }
  weir_receive_free (self);
  return 0;
}
