// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes what makes packets fit for browsers. The first byte is the codec; then come payloads, each
// behind a byte of flags and two bytes of length.

#include "codec/fit.h"
#include "fuzz.h"

#include <string.h>

enum { MARK = 1, NEXT = 2, LOSS = 4 };

static uint8_t room[WEIR_RTP_HEADER + WEIR_FIT_PAYLOAD];

static uint8_t *
reserve (void *data, size_t size)
{
  require (size <= sizeof room);
  return room;
}

static void
commit (void *data, size_t size)
{
  WeirRtp rtp;

  require (weir_rtp_parse (room, size, &rtp) == 0 && rtp.payload_length > 0);
  ++*(uint64_t *) data;
}

// `header` is a packet's first bytes, and `len` bytes of `payload` follow it.
static void
take (WeirFit *fit, const uint8_t header[WEIR_RTP_HEADER], const uint8_t *payload, size_t len)
{
  // Exactly the packet's size, so that a sanitizer sees a read past its end.
  uint8_t *packet = malloc (WEIR_RTP_HEADER + len);

  require (packet != NULL);
  memcpy (packet, header, WEIR_RTP_HEADER);
  memcpy (packet + WEIR_RTP_HEADER, payload, len);
  require (weir_fit_take (fit, packet, WEIR_RTP_HEADER + len) != WEIR_FIT_NO_MEMORY);
  free (packet);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  static const WeirCodec codecs[] = { WEIR_CODEC_H264, WEIR_CODEC_H265, WEIR_CODEC_VP8,
    WEIR_CODEC_VP9, WEIR_CODEC_AV1 };
  static const WeirFitOut out = { reserve, commit };
  uint64_t n_taken = 0, n_counted = 0, n_written = 0;
  uint32_t timestamp = 0;
  uint16_t seq = 0;
  WeirFit *fit;

  if (size == 0)
    return 0;
  fit = weir_fit_new (codecs[data[0] % (sizeof codecs / sizeof *codecs)], &out, &n_written);
  require (fit);
  data++;
  size--;
  while (size >= 3) {
    uint8_t header[WEIR_RTP_HEADER] = { 0x80, data[0] & MARK ? 0x80 : 0 };
    size_t len = (size_t) data[1] << 8 | data[2];

    len = len < size - 3 ? len : size - 3;
    timestamp += data[0] & NEXT;
    seq = (uint16_t) (seq + 1 + (data[0] & LOSS));
    weir_rtp_set_seq (header, seq);
    weir_rtp_set_timestamp (header, timestamp);
    take (fit, header, data + 3, len);
    n_taken++;
    data += 3 + len;
    size -= 3 + len;
  }
  for (WeirFitResult r = 0; r < WEIR_FIT_N_RESULTS; r++)
    n_counted += weir_fit_count (fit, r);
  require (n_counted == n_taken && n_written == weir_fit_written (fit));
  weir_fit_free (fit);
  return 0;
}
