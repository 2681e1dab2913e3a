// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/split.h"

#include "tap.h"

#define MAX 1400

static uint8_t packet[70000];

// Makes a packet with a header, an extension or not, and a payload of `len` bytes.
static size_t
make (bool extended, const uint8_t *payload, size_t n, size_t len)
{
  size_t header = extended ? 20 : 12;

  memset (packet, 0, header);
  packet[0] = extended ? 0x90 : 0x80;
  packet[1] = 0x80 | 96;
  packet[2] = packet[3] = 0xff;
  if (extended)
    packet[15] = 1;
  for (size_t i = 0; i < len; i++)
    packet[header + i] = i < n ? payload[i] : (uint8_t) (i * 7);
  return header + len;
}

// Splits the packet, and checks that the pieces make the NAL unit, or its fragment, again.
static void
check (WeirSplitCodec codec, size_t len, size_t nal, bool is_fragment, uint8_t type, uint8_t flags)
{
  uint8_t out[MAX], whole[70000];
  WeirSplit split;
  WeirRtp rtp, piece;
  size_t n, size, at = 0, skip = nal + is_fragment, header;

  CHECK_INT (weir_rtp_parse (packet, len, &rtp), 0);
  header = rtp.payload_offset;
  n = weir_split_begin (&split, codec, packet, &rtp, MAX);
  CHECK (n > 1);
  for (size_t i = 0; i < n; i++) {
    const uint8_t *p = out + header;
    uint8_t expected = 0;

    size = weir_split_next (&split, out);
    CHECK (size > header + nal + 1 && size <= MAX);
    CHECK_INT (weir_rtp_parse (out, size, &piece), 0);
    CHECK_INT (piece.seq, (uint16_t) (0xffff + i));
    CHECK_INT (piece.marker, i == n - 1);
    CHECK_INT (piece.payload_offset, header);
    if (codec == WEIR_SPLIT_H264) {
      CHECK_INT (p[0], (packet[header] & 0xe0) | 28);
    } else {
      CHECK_INT (p[0], (packet[header] & 0x81) | 49 << 1);
      CHECK_INT (p[1], packet[header + 1]);
    }
    if (i == 0)
      expected |= flags & 0x80;
    if (i == n - 1)
      expected |= flags & 0x40;
    CHECK_INT (p[nal], type | expected);
    memcpy (whole + at, p + nal + 1, size - header - nal - 1);
    at += size - header - nal - 1;
  }
  CHECK_INT (weir_split_next (&split, out), 0);
  CHECK_INT (at, len - header - skip);
  CHECK (!memcmp (whole, packet + header + skip, at));
}

static void
units_and_fragments_are_split (void)
{
  static const uint8_t idr[] = { 0x65 }, fu_a[] = { 0x7c, 0x85 }, middle[] = { 0x7c, 0x05 };
  static const uint8_t irap[] = { 19 << 1, 1 }, fu[] = { 49 << 1, 1, 0x40 | 19 };
  static const size_t lens[] = { 1389, 1401, 2800, 4000, 60000 };

  for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
    for (int extended = 0; extended < 2; extended++) {
      check (WEIR_SPLIT_H264, make (extended, idr, 1, lens[i]), 1, false, 5, 0xc0);
      check (WEIR_SPLIT_H264, make (extended, fu_a, 2, lens[i]), 1, true, 5, 0x80);
      check (WEIR_SPLIT_H264, make (extended, middle, 2, lens[i]), 1, true, 5, 0);
      check (WEIR_SPLIT_H265, make (extended, irap, 2, lens[i]), 2, false, 19, 0xc0);
      check (WEIR_SPLIT_H265, make (extended, fu, 3, lens[i]), 2, true, 19, 0x40);
    }
  }
}

static size_t
begin (WeirSplitCodec codec, size_t len, uint8_t first)
{
  WeirSplit split;
  WeirRtp rtp;

  if (weir_rtp_parse (packet, make (false, &first, 1, len), &rtp) < 0)
    return 0;
  return weir_split_begin (&split, codec, packet, &rtp, MAX);
}

static void
others_are_not_split (void)
{
  CHECK_INT (begin (WEIR_SPLIT_H264, MAX - 12, 0x65), 0); // not longer
  CHECK_INT (begin (WEIR_SPLIT_NONE, 5000, 0x65), 0);
  CHECK_INT (begin (WEIR_SPLIT_H264, 5000, 24), 0); // of several units
  CHECK_INT (begin (WEIR_SPLIT_H264, 5000, 0), 0);
  CHECK_INT (begin (WEIR_SPLIT_H265, 5000, 48 << 1), 0);
  CHECK_INT (begin (WEIR_SPLIT_H265, 5000, 63 << 1), 0);
  CHECK_INT (begin (WEIR_SPLIT_H264, 5000, 0x65), 4);
}

int
main (void)
{
  RUN (units_and_fragments_are_split);
  RUN (others_are_not_split);
  return tap_done ();
}
