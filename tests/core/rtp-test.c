// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/rtp.h"

#include <errno.h>
#include <stdlib.h>

#include "tap.h"

#define HEADER(first, second) first, second, 0x12, 0x34, 1, 2, 3, 4, 0xa, 0xb, 0xc, 0xd

static const struct {
  const char *what;
  uint8_t bytes[40];
  size_t len;
  int result;
  size_t payload_offset, payload_length, padding;
  uint8_t pt, n_csrc;
  bool marker;
} packets[] = {
  { "plain", { HEADER (0x80, 96), 1, 2 }, 14, 0, 12, 2, 0, 96, 0, false },
  { "marker", { HEADER (0x80, 0x80 | 33), 1 }, 13, 0, 12, 1, 0, 33, 0, true },
  { "no payload", { HEADER (0x80, 0) }, 12, 0, 12, 0, 0, 0, 0, false },
  { "two csrc", { HEADER (0x82, 96), 0, 0, 0, 1, 0, 0, 0, 2, 9 }, 21, 0, 20, 1, 0, 96, 2, false },
  { "extension", { HEADER (0x90, 96), 0xbe, 0xde, 0, 1, 5, 5, 5, 5, 7, 7 }, 22, 0, 20, 2, 0, 96,
      0 },
  { "empty extension", { HEADER (0x90, 96), 0, 0, 0, 0, 7 }, 17, 0, 16, 1, 0, 96, 0, false },
  { "padding", { HEADER (0xa0, 96), 1, 2, 0, 0, 3 }, 17, 0, 12, 2, 3, 96, 0, false },
  { "all padding", { HEADER (0xa0, 96), 0, 2 }, 14, 0, 12, 0, 2, 96, 0, false },
  { "all at once", { HEADER (0xb1, 96), 0, 0, 0, 1, 0, 0, 0, 1, 5, 5, 5, 5, 7, 1 }, 26, 0, 24, 1, 1,
      96, 1, false },
  { "version 1", { HEADER (0x40, 96), 1 }, 13, -EBADMSG },
  { "version 3", { HEADER (0xc0, 96), 1 }, 13, -EBADMSG },
  { "csrc beyond the end", { HEADER (0x81, 96), 0, 0, 1 }, 15, -EBADMSG },
  { "extension header beyond the end", { HEADER (0x90, 96), 0, 0, 0 }, 15, -EBADMSG },
  { "extension beyond the end", { HEADER (0x90, 96), 0, 0, 0, 1, 5, 5, 5 }, 19, -EBADMSG },
  { "padding of 0", { HEADER (0xa0, 96), 1, 0 }, 14, -EBADMSG },
  { "padding beyond the payload", { HEADER (0xa0, 96), 1, 3 }, 14, -EBADMSG },
  { "padding without payload", { HEADER (0xa0, 96) }, 12, -EBADMSG },
};

static void
headers_are_parsed (void)
{
  for (size_t i = 0; i < sizeof packets / sizeof packets[0]; i++) {
    WeirRtp rtp = { .seq = 77 };
    int r = weir_rtp_parse (packets[i].bytes, packets[i].len, &rtp);

    if (r != packets[i].result)
      printf ("# %s\n", packets[i].what);
    CHECK_INT (r, packets[i].result);
    if (r < 0) {
      CHECK_INT (rtp.seq, 77);
      continue;
    }
    CHECK_INT (rtp.pt, packets[i].pt);
    CHECK_INT (rtp.marker, packets[i].marker);
    CHECK_INT (rtp.n_csrc, packets[i].n_csrc);
    CHECK_INT (rtp.seq, 0x1234);
    CHECK_INT (rtp.timestamp, 0x01020304);
    CHECK_INT (rtp.ssrc, 0x0a0b0c0d);
    CHECK_INT (rtp.payload_offset, packets[i].payload_offset);
    CHECK_INT (rtp.payload_length, packets[i].payload_length);
    CHECK_INT (rtp.padding, packets[i].padding);
  }
}

// Every packet, cut at every length, in memory of exactly that length: a sanitizer sees a read past
// its end. The fields of a packet that still parses add up to its length.
static void
truncated_packets_are_refused (void)
{
  for (size_t i = 0; i < sizeof packets / sizeof packets[0]; i++) {
    for (size_t len = 0; len < packets[i].len; len++) {
      uint8_t *cut = malloc (len ? len : 1);
      WeirRtp rtp;

      memcpy (cut, packets[i].bytes, len);
      if (weir_rtp_parse (cut, len, &rtp) == 0)
        CHECK_INT (rtp.payload_offset + rtp.payload_length + rtp.padding, len);
      else
        CHECK (len < packets[i].len);
      if (len < WEIR_RTP_HEADER)
        CHECK_INT (weir_rtp_parse (cut, len, &rtp), -EBADMSG);
      free (cut);
    }
  }
}

static void
the_head_of_a_packet_is_enough_to_parse (void)
{
  uint8_t packet[1200] = { HEADER (0xb0, 0xe0), 0, 0, 0, 200 };
  WeirRtp whole, head;

  packet[1199] = 9;
  CHECK_INT (weir_rtp_parse (packet, sizeof packet, &whole), 0);
  CHECK_INT (weir_rtp_parse_head (packet, WEIR_RTP_HEADER_MAX, sizeof packet, 9, &head), 0);
  CHECK_INT (head.payload_offset, whole.payload_offset);
  CHECK_INT (head.payload_length, whole.payload_length);
  CHECK_INT (head.extension_profile, whole.extension_profile);
  CHECK_INT (whole.extension_offset, 16);
  CHECK_INT (whole.extension_length, 800);
  CHECK_INT (whole.payload_length, 1200 - 816 - 9);
}

static void
headers_are_patched_in_place (void)
{
  uint8_t packet[] = { HEADER (0x80, 0xe0), 1, 2, 3 };
  WeirRtp rtp;

  weir_rtp_set_seq (packet, 0xfedc);
  weir_rtp_set_timestamp (packet, 0xdeadbeef);
  weir_rtp_set_ssrc (packet, 0x80000001);
  CHECK_INT (weir_rtp_parse (packet, sizeof packet, &rtp), 0);
  CHECK_INT (rtp.seq, 0xfedc);
  CHECK_INT (rtp.timestamp, 0xdeadbeef);
  CHECK_INT (rtp.ssrc, 0x80000001);
  CHECK_INT (weir_rtp_get_seq (packet), 0xfedc);
  CHECK_INT (weir_rtp_get_timestamp (packet), 0xdeadbeef);
  CHECK_INT (weir_rtp_get_ssrc (packet), 0x80000001);
  CHECK (rtp.marker && rtp.pt == 0x60 && packet[12] == 1 && packet[14] == 3);
  weir_rtp_set_marker (packet, false);
  CHECK_INT (packet[1], 0x60);
  weir_rtp_set_pt (packet, 0xff);
  CHECK_INT (packet[1], 0x7f);
  weir_rtp_set_marker (packet, true);
  CHECK_INT (packet[1], 0xff);
}

static void
rtcp_is_recognised (void)
{
  for (int second = 0; second < 256; second++) {
    const uint8_t packet[] = { 0x80, (uint8_t) second };
    CHECK_INT (weir_rtp_is_rtcp (packet, 2), second >= 192 && second <= 223);
  }
  CHECK (!weir_rtp_is_rtcp ((const uint8_t[]) { 0x40, 200 }, 2));
  CHECK (!weir_rtp_is_rtcp ((const uint8_t[]) { 0x80 }, 1));
}

static void
counters_unwrap_ten_times (void)
{
  int64_t last16 = WEIR_UNWRAP_START, last32 = WEIR_UNWRAP_START;

  for (int64_t v = 65000; v < 65000 + 10 * 65536; v += 7)
    CHECK (weir_unwrap16 (&last16, (uint16_t) v) == v);
  for (int64_t v = 4000000000; v < 4000000000 + 10 * INT64_C (4294967296); v += 900000007)
    CHECK (weir_unwrap32 (&last32, (uint32_t) v) == v);
}

static void
reordered_values_unwrap (void)
{
  int64_t last = WEIR_UNWRAP_START;

  CHECK_INT (weir_unwrap16 (&last, 1), 1);
  CHECK_INT (weir_unwrap16 (&last, 65535), -1);
  CHECK_INT (weir_unwrap16 (&last, 2), 2);
  CHECK_INT (weir_unwrap16 (&last, 2), 2);
  last = WEIR_UNWRAP_START;
  CHECK_INT (weir_unwrap16 (&last, 65535), 65535);
  CHECK_INT (weir_unwrap16 (&last, 0), 65536);
  CHECK_INT (weir_unwrap16 (&last, 65534), 65534);
  CHECK_INT (weir_unwrap16 (&last, 32765), 65536 + 32765);
}

int
main (void)
{
  RUN (headers_are_parsed);
  RUN (truncated_packets_are_refused);
  RUN (the_head_of_a_packet_is_enough_to_parse);
  RUN (headers_are_patched_in_place);
  RUN (rtcp_is_recognised);
  RUN (counters_unwrap_ten_times);
  RUN (reordered_values_unwrap);
  return tap_done ();
}
