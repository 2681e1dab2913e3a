// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/fragments.h"

#include <string.h>

#include "rtp/rtp.h"
#include "tap.h"

#define MTU 100
#define UNIT_MAX 5000

// Writes an RTP packet with a marker, `n_csrc` sources and a NAL unit of `len` bytes.
static size_t
make_packet (uint8_t *packet, const uint8_t *unit, size_t len, unsigned n_csrc)
{
  const size_t header = WEIR_RTP_HEADER + 4 * (size_t) n_csrc;

  memset (packet, 7, header);
  packet[0] = (uint8_t) (0x80 | n_csrc);
  packet[1] = 0xe0;
  memcpy (packet + header, unit, len);
  return header + len;
}

// Joins the fragments of a unit of `packet` as a receiver does. Returns its length; checks each
// fragment.
static size_t
join (WeirFragments *fragments, const uint8_t *packet, unsigned codec, size_t header, uint8_t *unit)
{
  uint8_t out[WEIR_FRAGMENTS_HEAD];
  size_t n, len = codec, from, more;
  bool ended = false;

  for (unsigned i = 0; (n = weir_fragments_next (fragments, out, &from, &more)) > 0; i++) {
    const uint8_t *payload = out + header, fu = payload[codec];

    CHECK (!ended && n + more <= MTU && n == header + codec + 1 && more > 0);
    CHECK_INT (fu >> 7, i == 0);
    ended = fu >> 6 & 1;
    CHECK_INT (out[1] >> 7, ended);
    if (codec == WEIR_FRAGMENTS_H264) {
      CHECK_INT (payload[0] & 0x1f, 28);
      unit[0] = (uint8_t) ((payload[0] & 0xe0) | (fu & 0x1f));
    } else {
      CHECK_INT (payload[0] >> 1 & 0x3f, 49);
      unit[0] = (uint8_t) ((payload[0] & 0x81) | (fu & 0x3f) << 1);
      unit[1] = payload[1];
    }
    memcpy (unit + len, packet + from, more);
    len += more;
  }
  CHECK (ended);
  return len;
}

static void
check_unit (unsigned codec, size_t len, unsigned n_csrc)
{
  uint8_t unit[UNIT_MAX], joined[UNIT_MAX + MTU], packet[UNIT_MAX + WEIR_RTP_HEADER_MAX];
  uint8_t head[WEIR_FRAGMENTS_HEAD];
  WeirFragments fragments;
  size_t n;

  for (size_t i = 0; i < len; i++)
    unit[i] = (uint8_t) (i * 31 + len);
  unit[0] = codec == WEIR_FRAGMENTS_H264 ? 0x65 : 0x27;
  n = make_packet (packet, unit, len, n_csrc);
  memcpy (head, packet, n < sizeof head ? n : sizeof head);
  CHECK_INT (weir_fragments_begin (&fragments, head, n, codec, MTU), n > MTU);
  if (n <= MTU)
    return;
  CHECK_INT (join (&fragments, packet, codec, n - len, joined), len);
  CHECK (memcmp (joined, unit, len) == 0);
}

static void
units_of_any_length_are_joined_again (void)
{
  for (unsigned codec = WEIR_FRAGMENTS_H264; codec <= WEIR_FRAGMENTS_H265; codec++) {
    for (size_t len = 1; len < UNIT_MAX; len += len < 300 ? 1 : 37) {
      check_unit (codec, len, 0);
      check_unit (codec, len, 3);
    }
  }
}

static void
other_packets_are_left_alone (void)
{
  static const struct {
    unsigned codec;
    uint8_t first;
    bool split;
  } cases[] = {
    { WEIR_FRAGMENTS_H264, 0x77, true },  // the last type that is not RTP's
    { WEIR_FRAGMENTS_H264, 0x78, false }, // STAP-A
    { WEIR_FRAGMENTS_H264, 0x7c, false }, // FU-A
    { WEIR_FRAGMENTS_H265, 47 << 1, true },
    { WEIR_FRAGMENTS_H265, 48 << 1, false }, // an aggregation
    { WEIR_FRAGMENTS_H265, 49 << 1, false },
  };
  uint8_t unit[500] = { 0 }, packet[600];
  WeirFragments fragments;

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    size_t n;

    unit[0] = cases[i].first;
    n = make_packet (packet, unit, sizeof unit, 0);
    CHECK_INT (weir_fragments_begin (&fragments, packet, n, cases[i].codec, MTU), cases[i].split);
    CHECK (!weir_fragments_begin (&fragments, packet, n, cases[i].codec, 13));
    packet[0] |= 0x20; // padded
    packet[n - 1] = 4;
    CHECK (!weir_fragments_begin (&fragments, packet, n, cases[i].codec, MTU));
    packet[0] = 0; // not RTP
    CHECK (!weir_fragments_begin (&fragments, packet, n, cases[i].codec, MTU));
  }
}

int
main (void)
{
  RUN (units_of_any_length_are_joined_again);
  RUN (other_packets_are_left_alone);
  return tap_done ();
}
