// SPDX-License-Identifier: LGPL-2.1-or-later
// Prints the rates of the layers of an H.264 SVC stream over its time, as core measures them:
//
//     layer_rates_bench SECONDS
//
// One line "ms spatial.temporal bytes average" for each layer and each period of measuring: the
// bytes of the layer in the period, and its moving average in bits a second. The stream is a file
// that begins again at its end, with 30 pictures a second.

#include <err.h>

#include "avc.h"
#include "rtp/rtp.h"
#include "svc/rates.h"

#define PICTURE_NS (INT64_C (1000000000) / 30 + 1) // so that 6 are a period

static void
print_period (const WeirRates *rates, int64_t now_ns)
{
  static uint64_t before[WEIR_RATES_LAYERS];

  for (size_t i = 0; i < rates->n; i++) {
    const WeirLayerRate *layer = &rates->layers[i];

    printf ("%lld %u.%u %llu %.0f\n", (long long) (now_ns / 1000000), layer->spatial,
        layer->temporal, (unsigned long long) (layer->total_bytes - before[i]), layer->bitrate);
    before[i] = layer->total_bytes;
  }
}

int
main (int argc, char **argv)
{
  int64_t end_ns = argc == 2 ? atoi (argv[1]) * INT64_C (1000000000) : 0, now_ns = 0;
  WeirRates rates = { 0 };
  WeirFrame frame;
  uint16_t seq = 0;
  size_t at = 0;
  AvcRtp rtp;
  Avc avc;

  if (end_ns <= 0)
    errx (2, "usage: layer_rates_bench SECONDS");
  if (!avc_load (&avc, "svc_3s3t.264"))
    errx (1, "no file of H.264 SVC");
  rtp = avc_packetize (&avc, true, 0);
  weir_frame_init (&frame, WEIR_CODEC_H264, false);
  while (now_ns < end_ns) {
    bool marker = false;

    for (; !marker; at = (at + 1) % rtp.n) {
      uint8_t *packet = rtp.packets[at].data;

      // Sequence numbers and timestamps continue where the file begins again.
      weir_rtp_set_seq (packet, seq++);
      weir_rtp_set_timestamp (packet, (uint32_t) (now_ns / PICTURE_NS) * 3000);
      if (weir_frame_add (&frame, packet, rtp.packets[at].len, at) > WEIR_ADD_COMPLETE)
        errx (1, "packet %zu is in no frame", at);
      marker = packet[1] >> 7;
    }
    weir_frame_read (&frame);
    now_ns += PICTURE_NS;
    if (weir_rates_add (&rates, &frame, now_ns))
      print_period (&rates, now_ns);
    weir_frame_clear (&frame);
  }
  weir_frame_free (&frame);
  free (rtp.packets);
  avc_free (&avc);
  return 0;
}
