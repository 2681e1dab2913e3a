// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/feedback.h"

#include <errno.h>
#include <stdlib.h>

#include "rtp/rtcp_read.h"
#include "tap.h"

// Reads the first feedback of a packet. The bytes lie alone in memory, so that a sanitizer sees a
// read past their end.
static int
read_first (const uint8_t *packet, size_t len, WeirFeedback *out)
{
  uint8_t *copy = malloc (len ? len : 1);
  WeirBytes bytes;
  int result;

  memcpy (copy, packet, len);
  bytes = weir_bytes (copy, len);
  result = weir_feedback_next (&bytes, out);
  free (copy);
  return result;
}

// Puts the packet's length into its header.
static void
set_length (uint8_t *packet, size_t len)
{
  packet[2] = (uint8_t) ((len / 4 - 1) >> 8);
  packet[3] = (uint8_t) (len / 4 - 1);
}

static void
check_packet (const WeirFeedback *feedback, size_t i, bool arrived, uint32_t ticks)
{
  CHECK_INT (feedback->arrived[i], arrived);
  if (arrived)
    CHECK_INT (feedback->ticks[i], ticks);
}

// ---- TWCC; the values were worked out by hand from the draft ----

// As Chromium writes it: padding of two bytes.
static const uint8_t browser[] = { 0xaf, 205, 0, 6, 0, 0, 0, 1, 1, 2, 3, 4, // header, SSRCs
  0xff, 0xfe, 0, 4,                                                         // number, packets
  0, 0, 2, 7,                                                               // 128 ms
  0xd1, 0x80,                                                               // 1 0 1 2 ...
  3, 1, 0xff, 0xfc, 0, 2 };

static void
twcc_is_read (void)
{
  static WeirFeedback feedback;

  CHECK_INT (read_first (browser, sizeof browser, &feedback), 1);
  CHECK_INT (feedback.first, 65534);
  CHECK_INT (feedback.n, 4);
  CHECK_INT (feedback.left_out, 0);
  check_packet (&feedback, 0, true, 515);
  check_packet (&feedback, 1, false, 0);
  check_packet (&feedback, 2, true, 516);
  check_packet (&feedback, 3, true, 512); // 1 ms earlier
}

static void
padded_feedback_is_a_valid_packet (void)
{
  WeirRtcpReport report;
  uint8_t compound[100] = { 0x80, 201, 0, 1, 0, 0, 0, 1 };

  CHECK_INT (weir_rtcp_read (browser, sizeof browser, &report), -ENOENT);
  memcpy (compound + 8, browser, sizeof browser);
  memcpy (compound + 8 + sizeof browser, browser, sizeof browser);
  CHECK_INT (weir_rtcp_read (compound, 8 + 2 * sizeof browser, &report), 0);
  CHECK (report.more);
}

static void
twcc_chunks_are_read (void)
{
  static WeirFeedback feedback;
  // A run of 3 that arrived, 14 statuses of one bit, a run of 300 that are lost.
  static const uint8_t packet[] = { 0x8f, 205, 0, 7, 0, 0, 0, 1, 1, 2, 3, 4, 0, 9, 1, 61, 0, 0, 1,
    0, 0x20, 3, 0xa0, 0x01, 1, 44, 1, 2, 3, 4, 5, 0 };

  CHECK_INT (read_first (packet, sizeof packet, &feedback), 1);
  CHECK_INT (feedback.n, 317);
  check_packet (&feedback, 0, true, 256 + 1);
  check_packet (&feedback, 1, true, 256 + 3);
  check_packet (&feedback, 2, true, 256 + 6);
  check_packet (&feedback, 3, true, 256 + 10);
  check_packet (&feedback, 4, false, 0);
  check_packet (&feedback, 16, true, 256 + 15);
  for (size_t i = 17; i < 317; i++)
    CHECK (!feedback.arrived[i]);
}

static void
many_packets_are_cut (void)
{
  static WeirFeedback feedback;
  // 65535 packets in runs of 8191, all lost.
  uint8_t packet[40] = { 0x8f, 205, 0, 9, 0, 0, 0, 1, 1, 2, 3, 4, 0, 9, 0xff, 0xff };

  for (int i = 20; i < 40; i += 2)
    packet[i] = 0x1f, packet[i + 1] = 0xff;
  CHECK_INT (read_first (packet, sizeof packet, &feedback), 1);
  CHECK_INT (feedback.n, WEIR_FEEDBACK_MAX);
  CHECK_INT (feedback.left_out, 65535 - WEIR_FEEDBACK_MAX);
}

static void
wrong_twcc_is_refused (void)
{
  static WeirFeedback feedback;
  uint8_t packet[sizeof browser];

  // Each length of the packet that is too short for what it tells.
  for (size_t len = 4; len < 28; len += 4) {
    memcpy (packet, browser, sizeof packet);
    packet[0] = 0x8f;
    set_length (packet, len);
    CHECK_INT (read_first (packet, len, &feedback), -EBADMSG);
  }
  for (size_t len = 1; len < sizeof browser; len++)
    CHECK_INT (read_first (browser, len, &feedback), -EBADMSG);
  // A status of value 3, a run of none, padding longer than the packet.
  memcpy (packet, browser, sizeof packet);
  packet[20] |= 0x30;
  CHECK_INT (read_first (packet, sizeof packet, &feedback), -EBADMSG);
  memcpy (packet, browser, sizeof packet);
  packet[20] = packet[21] = 0;
  CHECK_INT (read_first (packet, sizeof packet, &feedback), -EBADMSG);
  memcpy (packet, browser, sizeof packet);
  packet[27] = 200;
  CHECK_INT (read_first (packet, sizeof packet, &feedback), -EBADMSG);
}

// ---- compounds ----

// That of RFC 8888 has other numbers. Nobody is asked for it, and it is skipped.
static void
all_feedback_of_a_compound_is_read (void)
{
  static const uint8_t rfc8888[] = { 0x8b, 205, 0, 5, 0, 0, 0, 1, // header, SSRC
    0, 0, 0, 0, 0, 1, 0, 1, 0x80, 0, 0, 0, 0, 2, 0, 0 };          // one packet that arrived, 2 s
  static WeirFeedback feedback;
  uint8_t compound[200] = { 0x80, 201, 0, 1, 0, 0, 0, 1 };
  size_t len = 8;
  WeirBytes bytes;

  memcpy (compound + len, browser, sizeof browser);
  len += sizeof browser;
  memcpy (compound + len, rfc8888, sizeof rfc8888);
  len += sizeof rfc8888;
  memcpy (compound + len, browser, sizeof browser);
  compound[len + 13] = 0xff;
  len += sizeof browser;
  bytes = weir_bytes (compound, len);
  CHECK_INT (weir_feedback_next (&bytes, &feedback), 1);
  CHECK_INT (feedback.first, 65534);
  CHECK_INT (weir_feedback_next (&bytes, &feedback), 1);
  CHECK_INT (feedback.first, 65535);
  CHECK_INT (weir_feedback_next (&bytes, &feedback), 0);
}

static void
remb_is_read (void)
{
  static const struct {
    uint8_t rate[3];
    uint64_t bits;
  } cases[] = {
    { { 0x00, 0x00, 0x00 }, 0 },
    { { 0x0b, 0xff, 0xff }, (uint64_t) 0x3ffff << 2 },
    { { 0x4d, 0x00, 0x00 }, (uint64_t) 0x10000 << 19 },
    { { 0xb7, 0xff, 0xff }, (uint64_t) 0x3ffff << 45 },
    { { 0xff, 0xff, 0xff }, UINT64_MAX },
  };
  uint8_t packet[48] = { 0x8f, 206, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0, 'R', 'E', 'M', 'B', 1 };
  uint64_t bits = 7;

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    memcpy (packet + 17, cases[i].rate, 3);
    CHECK (weir_feedback_read_remb (packet, 24, &bits));
    CHECK (bits == cases[i].bits);
  }
  // The lowest of two counts.
  memcpy (packet + 24, packet, 24);
  memcpy (packet + 17, cases[2].rate, 3);
  CHECK (weir_feedback_read_remb (packet, 48, &bits) && bits == cases[2].bits);
  bits = 7;
  packet[2] = packet[3] = 0;
  CHECK (!weir_feedback_read_remb (packet, 4, &bits));
  packet[3] = 5;
  packet[12] = 'r';
  CHECK (!weir_feedback_read_remb (packet, 24, &bits));
  CHECK (!weir_feedback_read_remb (packet, 0, &bits));
  CHECK_INT (bits, 7);
}

int
main (void)
{
  RUN (twcc_is_read);
  RUN (padded_feedback_is_a_valid_packet);
  RUN (twcc_chunks_are_read);
  RUN (many_packets_are_cut);
  RUN (wrong_twcc_is_refused);
  RUN (all_feedback_of_a_compound_is_read);
  RUN (remb_is_read);
  return tap_done ();
}
