// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/rtcp_write.h"

#include <errno.h>
#include <stdlib.h>

#include "rtp/rtcp.h"
#include "rtp/rtcp_read.h"
#include "rtp/rtp.h"
#include "tap.h"

static const WeirRtcpBlock block = {
  .ssrc = 0x01020304,
  .fraction_lost = 0x80,
  .lost = -2,
  .highest_seq = 0x00051234,
  .jitter = 0x11,
  .last_sr = 0xaabbccdd,
  .delay_sr = 0x00010000,
};

// The packets as drawn in RFC 3550.
static void
a_report_matches_the_rfc (void)
{
  static const uint8_t expected[] = {
    0x81, 201, 0, 7, 0xde, 0xad, 0xbe, 0xef, // header, reporter
    1, 2, 3, 4, 0x80, 0xff, 0xff, 0xfe,      // sender, losses
    0, 5, 0x12, 0x34, 0, 0, 0, 0x11,         // highest number, jitter
    0xaa, 0xbb, 0xcc, 0xdd, 0, 1, 0, 0,      // last sender report, delay
    0x81, 202, 0, 3, 0xde, 0xad, 0xbe, 0xef, // SDES
    1, 4, 'a', '@', 'b', 'c', 0, 0,          // CNAME, end of items
  };
  uint8_t out[100];

  CHECK_INT (weir_rtcp_write_rr (out, sizeof out, 0xdeadbeef, &block, 1, "a@bc"), sizeof expected);
  CHECK (!memcmp (out, expected, sizeof expected));
}

static void
a_sender_report_matches_the_rfc (void)
{
  static const uint8_t expected[] = {
    0x80, 200, 0, 6, 0xde, 0xad, 0xbe, 0xef,         // header, sender
    0xe0, 1, 2, 3, 4, 5, 6, 7, 0x10, 0x11, 0x12, 13, // NTP time, RTP timestamp
    0, 0, 1, 2, 0xff, 0xff, 0xff, 0xfe,              // packets, octets
    0x81, 202, 0, 3, 0xde, 0xad, 0xbe, 0xef,         // SDES
    1, 4, 'a', '@', 'b', 'c', 0, 0,                  // CNAME, end of items
  };
  static const WeirNtpMap at = { true, UINT64_C (0xe001020304050607), 0x1011120d, 0xdeadbeef };
  uint8_t out[100];
  WeirNtpMap map;
  size_t len = weir_rtcp_write_sr (out, sizeof out, &at, 258, UINT32_MAX - 1, "a@bc");

  CHECK_INT (len, sizeof expected);
  CHECK (!memcmp (out, expected, sizeof expected));
  CHECK_INT (weir_rtcp_find_sr (out, len, &map), 0);
  CHECK (map.ntp == at.ntp && map.timestamp == at.timestamp && map.ssrc == at.ssrc);
  CHECK_INT (weir_rtcp_write_sr (out, sizeof expected - 1, &at, 1, 2, "a@bc"), 0);
}

static void
a_goodbye_matches_the_rfc (void)
{
  static const uint8_t expected[] = { 0x81, 203, 0, 1, 0xde, 0xad, 0xbe, 0xef };
  uint8_t out[sizeof expected];

  CHECK_INT (weir_rtcp_write_bye (out, sizeof out, 0xdeadbeef), sizeof expected);
  CHECK (!memcmp (out, expected, sizeof expected));
  CHECK_INT (weir_rtcp_write_bye (out, sizeof out - 1, 1), 0);
}

static void
a_keyframe_request_matches_the_rfc (void)
{
  static const uint8_t expected[] = {
    0x81, 206, 0, 2, 0xde, 0xad, 0xbe, 0xef, // PSFB with PLI, sender of the request
    1, 2, 3, 4,                              // media stream
  };
  uint8_t out[sizeof expected];

  CHECK_INT (weir_rtcp_write_pli (out, sizeof out, 0xdeadbeef, 0x01020304), sizeof expected);
  CHECK (!memcmp (out, expected, sizeof expected));
  CHECK_INT (weir_rtcp_write_pli (out, sizeof out - 1, 1, 2), 0);
}

static void
a_full_intra_request_matches_the_rfc (void)
{
  static const uint8_t expected[] = {
    0x84, 206, 0, 4, 0xde, 0xad, 0xbe, 0xef, // PSFB with FIR, sender of the request
    0, 0, 0, 0, 1, 2, 3, 4, 9, 0, 0, 0,      // no media source; stream, number of the request
  };
  uint8_t out[100];
  size_t len = weir_rtcp_write_rr (out, sizeof out, 7, NULL, 0, "x");

  CHECK_INT (
      weir_rtcp_write_fir (out + len, sizeof expected, 0xdeadbeef, 0x01020304, 9), sizeof expected);
  CHECK (!memcmp (out + len, expected, sizeof expected));
  CHECK (weir_rtcp_asks_key (out, len + sizeof expected, 0x01020304));
  CHECK (!weir_rtcp_asks_key (out, len + sizeof expected, 0x01020305));
  CHECK_INT (weir_rtcp_write_fir (out, sizeof expected - 1, 1, 2, 3), 0);
}

static void
a_report_without_a_block_has_only_the_ssrc (void)
{
  uint8_t out[100];
  WeirNtpMap map;
  size_t len = weir_rtcp_write_rr (out, sizeof out, 7, NULL, 0, "x");

  CHECK_INT (len, 8 + 12);
  CHECK_INT (out[0], 0x80);
  CHECK_INT (out[3], 1);
  CHECK (weir_rtp_is_rtcp (out, len));
  CHECK_INT (weir_rtcp_find_sr (out, len, &map), -ENOENT);
}

// The items end with a zero and fill whole words, for names of any length.
static void
a_report_has_as_many_blocks_as_streams (void)
{
  const WeirRtcpBlock blocks[] = { block, { .ssrc = 9, .lost = 3 } };
  WeirRtcpReport report;
  uint8_t out[100];
  size_t len = weir_rtcp_write_rr (out, sizeof out, 7, blocks, 2, "x");

  CHECK_INT (len, 8 + 2 * 24 + 12);
  CHECK_INT (weir_rtcp_read (out, len, &report), 0);
  CHECK_INT (report.n_blocks, 2);
  CHECK (!memcmp (report.blocks, blocks, sizeof blocks));
}

// Two entries: 65534 with those 1, 2 and 16 behind it, and 15 (17 behind it) alone.
static void
a_request_for_packets_matches_the_rfc (void)
{
  static const uint16_t seqs[] = { 65534, 65535, 0, 14, 15 };
  static const uint8_t expected[] = {
    0x81, 205, 0, 4, 0xde, 0xad, 0xbe, 0xef, // RTPFB with generic NACK, sender of the request
    1, 2, 3, 4,                              // media stream
    0xff, 0xfe, 0x80, 0x03, 0, 15, 0, 0,     // numbers, each with a mask of those behind it
  };
  uint8_t out[sizeof expected];
  uint16_t read[8];
  size_t n = 5;

  CHECK_INT (
      weir_rtcp_write_nack (out, sizeof out, 0xdeadbeef, 0x01020304, seqs, &n), sizeof expected);
  CHECK_INT (n, 5);
  CHECK (!memcmp (out, expected, sizeof expected));
  CHECK_INT (weir_rtcp_read_nacks (out, sizeof out, 0x01020304, read, 8), 5);
  CHECK (!memcmp (read, seqs, sizeof seqs));
  // Room for one entry.
  CHECK_INT (weir_rtcp_write_nack (out, sizeof out - 1, 0xdeadbeef, 0x01020304, seqs, &n), 16);
  CHECK_INT (n, 4);
  CHECK_INT (out[3], 3);
  CHECK_INT (weir_rtcp_write_nack (out, 15, 1, 2, seqs, &n), 0);
  CHECK_INT (n, 0);
}

static void
a_bit_rate_matches_the_draft (void)
{
  static const uint32_t medias[] = { 0x01020304, 0x05060708 };
  static const uint8_t expected[] = {
    0x8f, 206, 0, 6, 0xde, 0xad, 0xbe, 0xef, // PSFB for applications, sender
    0, 0, 0, 0, 'R', 'E', 'M', 'B',          // no media stream, name
    2, 0x13, 0xd0, 0x90,                     // streams; 250000 * 2^4
    1, 2, 3, 4, 5, 6, 7, 8,                  // the streams
  };
  uint8_t out[sizeof expected];

  CHECK_INT (
      weir_rtcp_write_remb (out, sizeof out, 0xdeadbeef, 4000000, medias, 2), sizeof expected);
  CHECK (!memcmp (out, expected, sizeof expected));
  CHECK_INT (weir_rtcp_write_remb (out, sizeof out - 1, 1, 4000000, medias, 2), 0);
  weir_rtcp_write_remb (out, sizeof out, 1, 0x3ffff, medias, 2); // the most without an exponent
  CHECK_INT (out[17] << 16 | out[18] << 8 | out[19], 0x3ffff);
  weir_rtcp_write_remb (out, sizeof out, 1, UINT64_MAX, medias, 2);
  CHECK_INT (out[17] << 16 | out[18] << 8 | out[19], 46 << 18 | 0x3ffff);
}

static void
names_of_all_lengths_are_written (void)
{
  char name[400];

  for (size_t n = 0; n < 300; n++) {
    uint8_t out[400];
    size_t taken = n < 255 ? n : 255, len;
    WeirNtpMap map;

    memset (name, 'n', sizeof name);
    name[n] = '\0';
    len = weir_rtcp_write_rr (out, sizeof out, 7, &block, 1, name);
    CHECK_INT (len % 4, 0);
    CHECK (len > 32 + 10 + taken && len <= 32 + 10 + taken + 4);
    CHECK_INT (out[32 + 9], taken);
    CHECK_INT (out[32 + 10 + taken], 0);
    CHECK_INT ((out[32 + 2] << 8 | out[32 + 3]) * 4 + 4, len - 32);
    CHECK_INT (weir_rtcp_find_sr (out, len, &map), -ENOENT);
  }
}

static void
too_little_room_writes_nothing (void)
{
  for (size_t room = 0; room < 48; room++) {
    uint8_t *out = malloc (room ? room : 1);

    CHECK_INT (weir_rtcp_write_rr (out, room, 7, &block, 1, "a@bc"), 0);
    free (out);
  }
}

int
main (void)
{
  RUN (a_report_matches_the_rfc);
  RUN (a_sender_report_matches_the_rfc);
  RUN (a_goodbye_matches_the_rfc);
  RUN (a_keyframe_request_matches_the_rfc);
  RUN (a_full_intra_request_matches_the_rfc);
  RUN (a_report_without_a_block_has_only_the_ssrc);
  RUN (a_report_has_as_many_blocks_as_streams);
  RUN (a_request_for_packets_matches_the_rfc);
  RUN (a_bit_rate_matches_the_draft);
  RUN (names_of_all_lengths_are_written);
  RUN (too_little_room_writes_nothing);
  return tap_done ();
}
