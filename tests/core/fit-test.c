// SPDX-License-Identifier: LGPL-2.1-or-later
#include "codec/fit.h"

#include <stdlib.h>

#include "bits/bytes.h"
#include "codec/h264.h"
#include "tap.h"

#define MARK 1
#define KEEP_SEQ 2 // send() does not count on

// Bytes after the header of a slice: first_mb_in_slice and slice_type.
enum { P = 0xc0, B = 0xa8, I = 0xb0, P_REST = 0x60 /* first_mb 1, P */ };

static const uint8_t sps[] = { 0x67, 66, 0, 30, 0x80 | 0x40, 1 };
static const uint8_t sps_other[] = { 0x67, 66, 0, 31, 0x80 | 0x40, 1 };
static const uint8_t pps[] = { 0x68, 0x80 | 0x40, 2 };
static const uint8_t pps_other[] = { 0x68, 0x80 | 0x40, 3 };

typedef struct {
  size_t len;
  uint8_t data[2000];
  WeirRtp rtp;
  const uint8_t *payload;
} Packet;

static Packet out[400];
static size_t n_out;
static bool no_room;
static WeirFit *fit;
static uint16_t seq;
static uint32_t timestamp;

static uint8_t *
reserve (void *data, size_t size)
{
  return no_room || n_out == sizeof out / sizeof *out ? NULL : out[n_out].data;
}

static void
commit (void *data, size_t size)
{
  Packet *packet = &out[n_out++];

  packet->len = size;
  CHECK_INT (weir_rtp_parse (packet->data, size, &packet->rtp), 0);
  CHECK_INT (packet->rtp.payload_offset, WEIR_RTP_HEADER);
  packet->payload = packet->data + WEIR_RTP_HEADER;
}

static const WeirFitOut to = { reserve, commit };

static void
begin (WeirCodec codec)
{
  weir_fit_free (fit);
  fit = weir_fit_new (codec, &to, NULL);
  n_out = 0;
  no_room = false;
  seq = 65534;
  timestamp = 1000;
}

// Sends a packet, with an extension and padding that must not arrive, of `n` and `len` - `n` more
// bytes.
static WeirFitResult
send_more (const uint8_t *payload, size_t n, size_t len, int flags)
{
  static uint8_t packet[70000];
  const size_t size = WEIR_RTP_HEADER + 8 + len + 3;

  memset (packet, 0, WEIR_RTP_HEADER + 8);
  packet[0] = 0xb0;
  packet[1] = (uint8_t) (96 | (flags & MARK ? 0x80 : 0));
  weir_rtp_set_seq (packet, seq);
  weir_rtp_set_timestamp (packet, timestamp);
  weir_rtp_set_ssrc (packet, 0x12345678);
  packet[15] = 1;
  for (size_t i = 0; i < len; i++)
    packet[WEIR_RTP_HEADER + 8 + i] = i < n ? payload[i] : (uint8_t) (i * 7 + 1);
  packet[size - 1] = 3;
  seq += !(flags & KEEP_SEQ);
  return weir_fit_take (fit, packet, size);
}

static WeirFitResult
send (const uint8_t *payload, size_t len, int flags)
{
  return send_more (payload, len, len, flags);
}

// Sends a slice, of `len` bytes, of a picture of its own.
static WeirFitResult
send_picture (uint8_t header, uint8_t slice, size_t len)
{
  const uint8_t unit[] = { header, slice };

  timestamp += 3000;
  return send_more (unit, 2, len, MARK);
}

static void
expect (size_t i, const uint8_t *payload, size_t len, bool marker)
{
  CHECK (i < n_out);
  CHECK_INT (out[i].rtp.payload_length, len);
  CHECK (!memcmp (out[i].payload, payload, len));
  CHECK_INT (out[i].rtp.marker, marker);
}

static void
expect_seqs (void)
{
  for (size_t i = 0; i < n_out; i++) {
    CHECK_INT (out[i].rtp.seq, (uint16_t) (65534 + i));
    CHECK_INT (out[i].rtp.pt, 96);
    CHECK_INT (out[i].rtp.ssrc, 0x12345678);
  }
}

static void
what_fits_passes (void)
{
  static const uint8_t stap[] = { 0x78, 0, 3, 0x06, 5, 1, 0, 3, 0x41, P, 9 };
  static const uint8_t slice[] = { 0x41, P_REST, 9 }, fu[] = { 0x5c, 0x81, P_REST },
                       end[] = { 0x5c, 0x41, 7 };

  begin (WEIR_CODEC_H264);
  CHECK_INT (send (stap, sizeof stap, 0), WEIR_FIT_SENT);
  CHECK_INT (send (slice, sizeof slice, 0), WEIR_FIT_SENT);
  CHECK_INT (send_more (fu, 3, WEIR_FIT_PAYLOAD, 0), WEIR_FIT_SENT);
  CHECK_INT (send (end, 3, MARK), WEIR_FIT_SENT);
  CHECK_INT (n_out, 4);
  CHECK_INT (out[0].payload[0], 0x58); // the highest nal_ref_idc of its units
  CHECK (!memcmp (out[0].payload + 1, stap + 1, sizeof stap - 1));
  expect (1, slice, sizeof slice, false);
  CHECK_INT (out[2].rtp.payload_length, WEIR_FIT_PAYLOAD);
  CHECK (!memcmp (out[2].payload, fu, 3));
  expect (3, end, 3, true);
  expect_seqs ();
  CHECK_INT (out[3].rtp.timestamp, 1000);
}

// Puts the unit together that the fragments from `i` on hold.
static size_t
join (size_t i, uint8_t *unit)
{
  size_t len = 1;

  unit[0] = (uint8_t) ((out[i].payload[0] & 0xe0) | (out[i].payload[1] & 31));
  for (bool first = true, last = false; !last; i++, first = false) {
    const Packet *packet = &out[i];

    if (i == n_out || (packet->payload[0] & 31) != 28 || !!(packet->payload[1] & 0x80) != first)
      return 0;
    last = packet->payload[1] & 0x40;
    if (packet->rtp.payload_length != WEIR_FIT_PAYLOAD && !last)
      return 0; // only the last one is short
    memcpy (unit + len, packet->payload + 2, packet->rtp.payload_length - 2);
    len += packet->rtp.payload_length - 2;
  }
  return len;
}

static void
long_units_are_fragmented (void)
{
  static const size_t lens[] = { 1189, 1190, 2373, 2374, 2375, 20000, 60000 };
  static uint8_t unit[70000];

  for (size_t l = 0; l < sizeof lens / sizeof *lens; l++) {
    begin (WEIR_CODEC_H264);
    CHECK_INT (send_picture (0x41, P, lens[l]), WEIR_FIT_SENT);
    CHECK_INT (n_out, (lens[l] - 1 + 1185) / 1186);
    CHECK_INT (join (0, unit), lens[l]);
    for (size_t i = 2; i < lens[l]; i++)
      CHECK (unit[i] == (uint8_t) (i * 7 + 1));
    for (size_t i = 0; i < n_out; i++)
      CHECK_INT (out[i].rtp.marker, i == n_out - 1);
    expect_seqs ();
  }
}

static void
fragments_are_made_anew (void)
{
  static const size_t lens[] = { 1189, 1400, 1460, 3000, 9000 };
  static const uint8_t fu[] = { 0x7c, 0x85, I };
  static uint8_t unit[90000];
  size_t at, n;

  for (size_t l = 0; l < sizeof lens / sizeof *lens; l++) {
    begin (WEIR_CODEC_H264);
    for (int i = 0; i < 7; i++) {
      const uint8_t head[] = { 0x7c, (uint8_t) (i == 0 ? 0x85 : i == 6 ? 0x45 : 5), I };

      CHECK_INT (send_more (head, i == 0 ? 3 : 2, i == 6 ? 100 : lens[l], i == 6), WEIR_FIT_SENT);
    }
    n = join (0, unit);
    CHECK_INT (n, 1 + 6 * (lens[l] - 2) + 98);
    CHECK_INT (n_out, (n - 1 + 1185) / 1186);
    CHECK_INT (unit[0], 0x65);
    CHECK (unit[1] == fu[2] && unit[2] == (uint8_t) (3 * 7 + 1));
    at = 1 + (lens[l] - 2);
    CHECK (unit[at] == (uint8_t) (2 * 7 + 1)); // the second fragment begins
    CHECK (out[n_out - 1].rtp.marker);
    expect_seqs ();
  }
}

static void
pictures_of_b_slices_are_left_out (void)
{
  static const uint8_t sei[] = { 0x06, 1, 2 }, b_rest[] = { 0x01, 0x54 /* first_mb 1, B */, 1 };

  begin (WEIR_CODEC_H264);
  send_picture (0x65, I, 50);
  for (int i = 0; i < 10; i++) {
    send_picture (0x41, P, 50);
    timestamp -= 1000;
    // Before it what only belongs to it; with any nal_ref_idc.
    CHECK_INT (send (sei, sizeof sei, 0), WEIR_FIT_NEEDLESS);
    CHECK_INT (send ((const uint8_t[]) { 0x41, B, 1 }, 3, 0), WEIR_FIT_B);
    CHECK_INT (send (b_rest, sizeof b_rest, 0), WEIR_FIT_B);
    CHECK_INT (send ((const uint8_t[]) { 0x1c, 0x81, 0x54, 1 }, 4, 0), WEIR_FIT_B);
    CHECK_INT (send ((const uint8_t[]) { 0x1c, 0x41, 1, 1 }, 4, MARK), WEIR_FIT_B);
    timestamp += 1000;
  }
  CHECK_INT (n_out, 11);
  CHECK_INT (weir_fit_count (fit, WEIR_FIT_B), 40);
  expect_seqs ();
  for (size_t i = 0; i < n_out; i++) {
    CHECK (out[i].rtp.marker);
    CHECK_INT (out[i].rtp.timestamp, 4000 + i * 3000);
  }
}

static void
a_b_picture_in_fragments_is_left_out (void)
{
  begin (WEIR_CODEC_H264);
  send_picture (0x41, P, 50);
  timestamp += 1;
  CHECK_INT (send_more ((const uint8_t[]) { 0x1c, 0x81, B }, 3, 1400, 0), WEIR_FIT_B);
  CHECK_INT (send_more ((const uint8_t[]) { 0x1c, 0x01 }, 2, 1400, 0), WEIR_FIT_B);
  CHECK_INT (send_more ((const uint8_t[]) { 0x1c, 0x41 }, 2, 1400, MARK), WEIR_FIT_B);
  send_picture (0x41, P, 50);
  CHECK_INT (n_out, 2);
  expect_seqs ();
}

// Checks that packet `i` aggregates these units.
static void
expect_units (size_t i, const uint8_t *const *units, const size_t *lens, size_t n)
{
  WeirBytes b = weir_bytes (out[i].payload, out[i].rtp.payload_length);
  const uint8_t *unit = NULL;
  uint8_t header;
  uint16_t size;

  CHECK (i < n_out);
  CHECK (weir_bytes_u8 (&b, &header) && (header & 31) == 24);
  for (size_t u = 0; u < n; u++) {
    CHECK (weir_bytes_u16 (&b, &size) && weir_bytes_take (&b, size, &unit));
    CHECK_INT (size, lens[u]);
    CHECK (!memcmp (unit, units[u], lens[u]));
  }
  CHECK_INT (weir_bytes_left (&b), 0);
}

static const uint8_t idr[] = { 0x65, I, 7 }, idr_rest[] = { 0x65, 0x58, 8 }, p[] = { 0x41, P, 7 };

static void
parameter_sets_stand_before_each_idr_once (void)
{
  const uint8_t *units[] = { sps, pps, idr };
  const size_t lens[] = { sizeof sps, sizeof pps, sizeof idr };

  begin (WEIR_CODEC_H264);
  weir_fit_add_set (fit, sps, sizeof sps);
  weir_fit_add_set (fit, pps, sizeof pps);
  for (int i = 0; i < 3; i++) {
    timestamp += 3000;
    if (i == 1) { // as some cameras: before each slice
      CHECK_INT (send (sps, sizeof sps, 0), WEIR_FIT_NEEDLESS);
      CHECK_INT (send (pps, sizeof pps, 0), WEIR_FIT_NEEDLESS);
    }
    CHECK_INT (send (idr, sizeof idr, 0), WEIR_FIT_SENT);
    if (i == 1) {
      CHECK_INT (send (sps, sizeof sps, 0), WEIR_FIT_NEEDLESS);
      CHECK_INT (send (pps, sizeof pps, 0), WEIR_FIT_NEEDLESS);
    }
    CHECK_INT (send (idr_rest, sizeof idr_rest, MARK), WEIR_FIT_SENT);
    send_picture (0x41, P, 50);
    CHECK_INT (n_out, 3 * (i + 1));
    expect_units ((size_t) i * 3, units, lens, 3);
    expect ((size_t) i * 3 + 1, idr_rest, sizeof idr_rest, true);
  }
  expect_seqs ();
}

static void
new_parameter_sets_are_sent_once (void)
{
  const uint8_t *units[] = { pps_other, p }, *others[] = { sps_other, pps, p },
                *all[] = { sps_other, pps, idr };
  const size_t lens[] = { sizeof sps, sizeof pps, sizeof p };

  begin (WEIR_CODEC_H264);
  weir_fit_add_set (fit, sps, sizeof sps);
  weir_fit_add_set (fit, pps, sizeof pps);
  send (p, sizeof p, MARK); // nobody can begin here
  expect (0, p, sizeof p, true);
  n_out = 0;
  timestamp++;
  send (idr, sizeof idr, MARK);
  // In a picture that is left out.
  timestamp++;
  send (sps, sizeof sps, 0);
  send (pps_other, sizeof pps_other, 0);
  CHECK_INT (send ((const uint8_t[]) { 0x01, B, 1 }, 3, MARK), WEIR_FIT_B);
  timestamp++;
  send (sps, sizeof sps, 0);
  send (p, sizeof p, MARK);
  CHECK_INT (n_out, 2);
  expect_units (1, units, lens + 1, 2);
  timestamp++;
  send (p, sizeof p, MARK);
  expect (2, p, sizeof p, true);
  // Another SPS ends the PPS of the one before.
  timestamp++;
  send (sps_other, sizeof sps_other, 0);
  send (pps, sizeof pps, 0);
  send (p, sizeof p, MARK);
  expect_units (3, others, lens, 3);
  timestamp++;
  send (idr, sizeof idr, MARK);
  expect_units (4, all, lens, 3);
}

static void
an_aggregation_may_end_with_new_sets (void)
{
  static const uint8_t stap[] = { 0x78, 0, 3, 0x65, I, 7, 0, 6, 0x67, 66, 0, 31, 0xc0, 1 };
  const uint8_t *units[] = { sps, pps, idr };
  const size_t lens[] = { sizeof sps, sizeof pps, sizeof idr };

  begin (WEIR_CODEC_H264);
  weir_fit_add_set (fit, sps, sizeof sps);
  weir_fit_add_set (fit, pps, sizeof pps);
  CHECK_INT (send (stap, sizeof stap, MARK), WEIR_FIT_SENT);
  CHECK_INT (n_out, 2);
  expect_units (0, units, lens, 3);
  CHECK (!out[0].rtp.marker && out[1].rtp.marker); // filler has it
}

static void
needless_units_leave_the_marker (void)
{
  static const uint8_t aud[] = { 0x09, 0xf0 }, filler[] = { 12, 0x80 };

  begin (WEIR_CODEC_H264);
  CHECK_INT (send (aud, sizeof aud, 0), WEIR_FIT_NEEDLESS);
  CHECK_INT (send (p, sizeof p, 0), WEIR_FIT_SENT);
  CHECK_INT (send_more (filler, 1, 900, MARK), WEIR_FIT_NEEDLESS);
  CHECK_INT (n_out, 2);
  expect (0, p, sizeof p, false);
  expect (1, filler, sizeof filler, true);
  // A marked slice of a higher layer, in fragments.
  timestamp++;
  CHECK_INT (send (p, sizeof p, 0), WEIR_FIT_SENT);
  CHECK_INT (send_more ((const uint8_t[]) { 0x7c, 0x80 | 20 }, 2, 900, 0), WEIR_FIT_NEEDLESS);
  CHECK_INT (send_more ((const uint8_t[]) { 0x7c, 0x40 | 20 }, 2, 900, MARK), WEIR_FIT_NEEDLESS);
  CHECK_INT (n_out, 4);
  expect (3, filler, sizeof filler, true);
  // Nothing of a picture that has no slice.
  timestamp++;
  send (aud, sizeof aud, MARK);
  CHECK_INT (n_out, 4);
  expect_seqs ();
}

static void
odd_markers_are_put_right (void)
{
  static const uint8_t rest[] = { 0x41, P_REST, 9 }, filler[] = { 12, 0x80 };

  for (int mark = 0; mark < 2; mark++) {
    begin (WEIR_CODEC_H264);
    for (int i = 0; i < 4; i++) {
      timestamp += 3000;
      send (p, sizeof p, mark);
      send (rest, sizeof rest, mark);
    }
    CHECK_INT (n_out, 11);
    for (size_t i = 0; i < n_out; i++) {
      CHECK_INT (out[i].rtp.timestamp, 4000 + 3000 * (i / 3));
      if (i % 3 == 2)
        expect (i, filler, sizeof filler, true);
      else // of the first frame it is not known yet
        CHECK_INT (out[i].rtp.marker, mark && i == 0);
    }
    expect_seqs ();
  }
}

static void
a_loss_leaves_one_number_out (void)
{
  begin (WEIR_CODEC_H264);
  send_picture (0x41, P, 50);
  seq = (uint16_t) (seq + 5);
  send_picture (0x41, P, 50);
  CHECK_INT (out[1].rtp.seq, 0);
  // In a picture that is left out: none.
  timestamp += 10;
  send ((const uint8_t[]) { 0x01, B, 1 }, 3, 0);
  seq++;
  send ((const uint8_t[]) { 0x01, 0x54, 1 }, 3, MARK);
  send_picture (0x41, P, 50);
  CHECK_INT (out[2].rtp.seq, 1);
  // The rest of a unit whose middle was lost is of no use.
  timestamp += 10;
  CHECK_INT (send_more ((const uint8_t[]) { 0x5c, 0x81, P }, 3, 1400, 0), WEIR_FIT_SENT);
  seq++;
  CHECK_INT (send_more ((const uint8_t[]) { 0x5c, 0x01, P }, 3, 1400, 0), WEIR_FIT_BROKEN);
  CHECK_INT (send_more ((const uint8_t[]) { 0x5c, 0x41, P }, 3, 1400, MARK), WEIR_FIT_BROKEN);
  CHECK_INT (n_out, 4);
  send_picture (0x41, P, 50);
  CHECK_INT (out[4].rtp.seq, 4);
  CHECK_INT (n_out, 5);
  // A source that takes over in the middle of a unit has lost nothing by the numbers.
  timestamp += 10;
  send_more ((const uint8_t[]) { 0x5c, 0x81, P }, 3, 1400, 0);
  send_picture (0x65, I, 50);
  CHECK_INT (n_out, 7);
  CHECK_INT (out[6].rtp.seq, 7);
}

static void
odd_packets_are_counted (void)
{
  static const uint8_t bad[][4] = { { 0 }, { 25, 1, 2, 3 }, { 0x78, 0, 9, 1 }, { 0x5c, 0x01, 1, 1 },
    { 0x5c }, { 0x67, 1 } };
  uint8_t raw[] = { 0x80, 96, 0 };

  begin (WEIR_CODEC_H264);
  send_picture (0x41, P, 50);
  seq--;
  CHECK_INT (send (p, sizeof p, MARK), WEIR_FIT_LATE);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    CHECK_INT (send (bad[i], i < 4 ? 4 : i == 4 ? 1 : 2, MARK), WEIR_FIT_BROKEN);
  CHECK_INT (weir_fit_take (fit, raw, sizeof raw), WEIR_FIT_BROKEN);
  CHECK_INT (send (NULL, 0, MARK), WEIR_FIT_NEEDLESS); // padding alone
  no_room = true;
  CHECK_INT (send_picture (0x41, P, 50), WEIR_FIT_NO_MEMORY);
  no_room = false;
  send_picture (0x41, P, 50);
  CHECK_INT (n_out, 2);
  CHECK_INT (out[1].rtp.seq, 0); // the missing number tells
  CHECK_INT (weir_fit_count (fit, WEIR_FIT_BROKEN), 7);
  CHECK_INT (weir_fit_written (fit), 2);
}

static void
timestamps_do_not_go_back (void)
{
  begin (WEIR_CODEC_H264);
  send_picture (0x41, P, 50);
  timestamp -= 5000;
  send_picture (0x41, P, 50);
  send_picture (0x41, P, 50);
  send_picture (0x41, P, 50);
  timestamp -= 90000 * 100;
  send_picture (0x41, P, 50);
  CHECK_INT (out[1].rtp.timestamp, 4001);
  CHECK_INT (out[2].rtp.timestamp, 5000);
  CHECK_INT (out[3].rtp.timestamp, 8000);
  CHECK_INT (out[4].rtp.timestamp, (uint32_t) (11000 - 90000 * 100));
}

static void
vp8_is_cut (void)
{
  static const uint8_t head[] = { 0x90, 0xf0, 0x81, 2, 3, 0x20, 0xaa };

  begin (WEIR_CODEC_VP8);
  CHECK_INT (send_more (head, sizeof head, 100, MARK), WEIR_FIT_SENT);
  CHECK_INT (send_more (head, sizeof head, 2500, MARK), WEIR_FIT_SENT);
  CHECK_INT (n_out, 4);
  CHECK (!memcmp (out[1].payload, head, sizeof head));
  for (size_t i = 2, at = WEIR_FIT_PAYLOAD; i < 4; i++) {
    CHECK_INT (out[i].payload[0], 0x80);
    CHECK (!memcmp (out[i].payload + 1, head + 1, 5));
    CHECK_INT (out[i].payload[6], (uint8_t) (at * 7 + 1));
    at += out[i].rtp.payload_length - 6;
    CHECK_INT (out[i].rtp.marker, i == 3);
    if (i == 3)
      CHECK_INT (at, 2500);
  }
  expect_seqs ();
  CHECK_INT (send_more ((const uint8_t[]) { 0x10 }, 1, 1300, 0), WEIR_FIT_SENT);
}

static void
vp9_is_cut (void)
{
  // I, F with two references, L, B, E, V with a resolution and a group of two pictures.
  static const uint8_t head[] = { 0xfe, 0x81, 2, 0x20, 3, 4, 0x18, 1, 2, 1, 2, 2, 0x04, 9, 0x00 };

  begin (WEIR_CODEC_VP9);
  CHECK_INT (send_more (head, sizeof head, 1300, MARK), WEIR_FIT_SENT);
  CHECK_INT (n_out, 2);
  CHECK_INT (out[0].payload[0], 0xfe & ~0x04);
  CHECK (!memcmp (out[0].payload + 1, head + 1, sizeof head - 1));
  CHECK_INT (out[1].payload[0], 0xfe & ~0x0a);
  CHECK (!memcmp (out[1].payload + 1, head + 1, 5));
  CHECK_INT (out[1].payload[6], (uint8_t) (WEIR_FIT_PAYLOAD * 7 + 1));
  CHECK_INT (out[1].rtp.payload_length, 1300 - WEIR_FIT_PAYLOAD + 6);
  CHECK (!out[0].rtp.marker && out[1].rtp.marker);
}

static void
av1_is_cut (void)
{
  // W = 2: an element of 3 bytes, and the rest, which goes on in the next packet.
  static const uint8_t head[] = { 0x68, 3, 0x08, 1, 2, 0x30 };

  begin (WEIR_CODEC_AV1);
  CHECK_INT (send_more (head, sizeof head, 1500, 0), WEIR_FIT_SENT);
  CHECK_INT (n_out, 3);
  expect (0, (const uint8_t[]) { 0x18, 0x08, 1, 2 }, 4, false);
  CHECK (out[1].payload[0] == 0x50 && out[1].payload[1] == 0x30);
  CHECK_INT (out[2].payload[0], 0xd0);
  CHECK_INT (out[1].rtp.payload_length + out[2].rtp.payload_length, 1495 + 2);
  CHECK_INT (send_more ((const uint8_t[]) { 0x00, 0xff }, 2, 1500, 0), WEIR_FIT_BROKEN);
}

// What stands before it was sent.
static void
an_av1_packet_is_sent_if_part_of_it_is (void)
{
  // Each element has its length: of 3 bytes, and of more than there are.
  static const uint8_t broken[] = { 0x00, 3, 0x08, 1, 2, 0xff, 0x7f }, empty[1200] = { 0 };

  begin (WEIR_CODEC_AV1);
  CHECK_INT (send_more (broken, sizeof broken, 1500, 0), WEIR_FIT_SENT);
  CHECK_INT (n_out, 1);
  expect (0, (const uint8_t[]) { 0x10, 0x08, 1, 2 }, 4, false);
  CHECK_INT (send (empty, sizeof empty, MARK), WEIR_FIT_BROKEN);
  CHECK_INT (n_out, 1);
}

static void
h265_is_cut (void)
{
  static const uint8_t head[] = { 19 << 1, 1 }, fu[] = { 49 << 1, 1, 0x40 | 19 },
                       ap[] = { 48 << 1, 1, 0, 4, 32 << 1, 1, 2, 3, 5, 0x14, 19 << 1, 1 };

  begin (WEIR_CODEC_H265);
  CHECK_INT (send_more (head, 2, 2000, MARK), WEIR_FIT_SENT);
  CHECK_INT (send_more (fu, 3, 1400, MARK), WEIR_FIT_SENT);
  CHECK_INT (n_out, 4);
  CHECK_INT (out[0].payload[2], 0x80 | 19);
  CHECK_INT (out[1].payload[2], 0x40 | 19);
  CHECK_INT (out[2].payload[2], 19);
  CHECK_INT (out[3].payload[2], 0x40 | 19);
  CHECK_INT (out[0].rtp.payload_length + out[1].rtp.payload_length, 2000 - 2 + 6);
  CHECK_INT (send_more (ap, sizeof ap, 10 + 1300, MARK), WEIR_FIT_SENT);
  CHECK_INT (n_out, 7);
  expect (4, ap + 4, 4, false);
  CHECK_INT (out[5].payload[2], 0x80 | 19);
  CHECK (out[6].rtp.marker);
  expect_seqs ();
}

// The end of a sequence is its header only; a delimiter has a byte more.
static void
an_aggregation_of_h265_may_end_with_a_short_unit (void)
{
  static const uint8_t aud[] = { 35 << 1, 1, 0x50 }, eos[] = { 36 << 1, 1 };
  uint8_t ap[1300] = { 48 << 1, 1, 0, sizeof aud };

  for (int i = 0; i < 2; i++) {
    const size_t len = i == 0 ? sizeof aud : sizeof eos, unit = sizeof ap - 7 - 2 - 2 - len;

    begin (WEIR_CODEC_H265);
    memcpy (ap + 4, aud, sizeof aud);
    ap[7] = (uint8_t) (unit >> 8);
    ap[8] = (uint8_t) unit;
    ap[9] = 1 << 1;
    ap[10] = 1;
    ap[9 + unit] = 0;
    ap[9 + unit + 1] = (uint8_t) len;
    memcpy (ap + 9 + unit + 2, i == 0 ? aud : eos, len);
    CHECK_INT (send (ap, sizeof ap, MARK), WEIR_FIT_SENT);
    expect (0, aud, sizeof aud, false);
    CHECK (!out[n_out - 2].rtp.marker);
    expect (n_out - 1, i == 0 ? aud : eos, len, true);
    expect_seqs ();
  }
}

static void
sound_passes (void)
{
  begin (WEIR_CODEC_AUDIO);
  CHECK_INT (send_more (NULL, 0, 1275, 0), WEIR_FIT_SENT);
  seq++;
  CHECK_INT (send_more (NULL, 0, 80, 0), WEIR_FIT_SENT);
  CHECK_INT (out[0].rtp.payload_length, 1275);
  CHECK_INT (out[1].rtp.seq, 0);
  begin (WEIR_CODEC_OPAQUE);
  CHECK_INT (send_more (NULL, 0, 1275, 0), WEIR_FIT_TOO_LONG);
}

// Bytes of chance, which look like the payloads of the codec.
static void
any_bytes_are_taken (void)
{
  static const WeirCodec codecs[] = { WEIR_CODEC_H264, WEIR_CODEC_H265, WEIR_CODEC_VP8,
    WEIR_CODEC_VP9, WEIR_CODEC_AV1 };
  uint64_t sum;

  srand (1);
  for (size_t c = 0; c < sizeof codecs / sizeof *codecs; c++) {
    begin (codecs[c]);
    for (int i = 0; i < 30000; i++) {
      uint8_t payload[24];

      for (size_t b = 0; b < sizeof payload; b++)
        payload[b] = (uint8_t) rand ();
      if (codecs[c] == WEIR_CODEC_H264 && i % 2)
        payload[0] = (uint8_t) (i % 4 == 1 ? 0x7c : 0x78);
      timestamp += rand () % 2;
      seq = (uint16_t) (seq + (rand () % 16 == 0));
      n_out = 0;
      send_more (payload, (size_t) rand () % 25, (size_t) rand () % 4000, rand () & 1);
      for (size_t o = 0; o < n_out; o++)
        CHECK (out[o].rtp.payload_length <= WEIR_FIT_PAYLOAD);
    }
    sum = 0;
    for (WeirFitResult r = 0; r < WEIR_FIT_N_RESULTS; r++)
      sum += weir_fit_count (fit, r);
    CHECK_INT (sum, 30000);
  }
}

int
main (void)
{
  RUN (what_fits_passes);
  RUN (long_units_are_fragmented);
  RUN (fragments_are_made_anew);
  RUN (pictures_of_b_slices_are_left_out);
  RUN (a_b_picture_in_fragments_is_left_out);
  RUN (parameter_sets_stand_before_each_idr_once);
  RUN (new_parameter_sets_are_sent_once);
  RUN (an_aggregation_may_end_with_new_sets);
  RUN (needless_units_leave_the_marker);
  RUN (odd_markers_are_put_right);
  RUN (a_loss_leaves_one_number_out);
  RUN (odd_packets_are_counted);
  RUN (timestamps_do_not_go_back);
  RUN (vp8_is_cut);
  RUN (vp9_is_cut);
  RUN (av1_is_cut);
  RUN (an_av1_packet_is_sent_if_part_of_it_is);
  RUN (h265_is_cut);
  RUN (an_aggregation_of_h265_may_end_with_a_short_unit);
  RUN (sound_passes);
  RUN (any_bytes_are_taken);
  weir_fit_free (fit);
  return tap_done ();
}
