// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/ts_framer.h"

#include <string.h>

#define N_PACKETS 100
#define RTP 12

// Returns packets of 188 bytes, whose bodies have other sync bytes. (transfer full)
static GByteArray *
make_packets (void)
{
  GByteArray *packets = g_byte_array_new ();

  for (guint i = 0; i < N_PACKETS; i++) {
    guint8 packet[TS_FRAMER_PACKET];

    for (guint k = 0; k < sizeof packet; k++)
      packet[k] = (guint8) (k == 0 || (i + k) % 50 == 0 ? 0x47 : i + k);
    packet[3] = 0x10;
    g_byte_array_append (packets, packet, sizeof packet);
  }
  return packets;
}

// Returns the packets with `before` and `behind` bytes around each. (transfer full)
static GByteArray *
wrap (const GByteArray *packets, guint before, guint behind)
{
  static const guint8 other[32];
  GByteArray *wrapped = g_byte_array_new ();

  for (guint at = 0; at < packets->len; at += TS_FRAMER_PACKET) {
    g_byte_array_append (wrapped, other, before);
    g_byte_array_append (wrapped, packets->data + at, TS_FRAMER_PACKET);
    g_byte_array_append (wrapped, other, behind);
  }
  return wrapped;
}

// Pushes datagrams of `size` bytes, but not number `lost`. Returns what they give, and in `refused`
// how many give nothing. (transfer full)
static GByteArray *
push_all (const GByteArray *stream, guint size, guint lost, guint *refused)
{
  GByteArray *out = g_byte_array_new ();
  TsFramer framer = { 0 };

  *refused = 0;
  for (guint at = 0; at < stream->len; at += size) {
    guint len = MIN (size, stream->len - at);
    guint8 *datagram = g_memdup2 (stream->data + at, len); // its end is that of the memory

    if (at / size != lost && ts_framer_is_whole (&framer, datagram, len))
      g_byte_array_append (out, datagram, len);
    else if (at / size != lost && !ts_framer_push (&framer, datagram, len, out))
      ++*refused;
    g_free (datagram);
  }
  return out;
}

static void
all_forms_become_whole_packets (void)
{
  static const struct {
    guint before, behind;
  } forms[] = { { 0, 0 }, { 4, 0 }, { 0, 16 }, { 0, 20 } };

  for (guint f = 0; f < G_N_ELEMENTS (forms); f++) {
    guint stride = TS_FRAMER_PACKET + forms[f].before + forms[f].behind, refused;
    const guint sizes[] = { stride, 2 * stride, 3 * stride, 7 * stride, 1472, 1316,
      2 * stride + 100, 65507 };
    GByteArray *packets = make_packets (),
               *stream = wrap (packets, forms[f].before, forms[f].behind);

    for (guint i = 0; i < G_N_ELEMENTS (sizes); i++) {
      GByteArray *out = push_all (stream, sizes[i], G_MAXUINT, &refused);

      g_test_message ("packets of %u bytes in datagrams of %u", stride, sizes[i]);
      g_assert_cmpuint (refused, ==, 0);
      g_assert_cmpmem (out->data, out->len, packets->data, packets->len);
      g_byte_array_unref (out);
    }
    g_byte_array_unref (stream);
    g_byte_array_unref (packets);
  }
}

// Each datagram has one packet, or two, of another form than the one before, and none is lost.
static void
the_form_may_change_with_each_datagram (void)
{
  static const guint forms[][2] = { { 0, 0 }, { 4, 0 }, { 0, 16 }, { 0, 20 } };
  GByteArray *packets = make_packets (), *out = g_byte_array_new ();
  TsFramer framer = { 0 };

  for (guint i = 0, at = 0; at < packets->len; i++) {
    GByteArray some = { packets->data + at, TS_FRAMER_PACKET * (1 + i / 4 % 2) };
    GByteArray *datagram = wrap (&some, forms[i % 4][0], forms[i % 4][1]);

    if (ts_framer_is_whole (&framer, datagram->data, datagram->len))
      g_byte_array_append (out, datagram->data, datagram->len);
    else
      g_assert_true (ts_framer_push (&framer, datagram->data, datagram->len, out));
    g_byte_array_unref (datagram);
    at += some.len;
  }
  g_assert_cmpmem (out->data, out->len, packets->data, packets->len);
  g_byte_array_unref (out);
  g_byte_array_unref (packets);
}

// FFmpeg's datagrams without pkt_size end where its writes do.
static void
short_datagrams_between_are_taken (void)
{
  static const guint sizes[] = { 1472, 64, 1472, 192, 20, 1, 380 };
  GByteArray *packets = make_packets (), *out = g_byte_array_new ();
  TsFramer framer = { 0 };
  guint at = 0;

  for (guint i = 0; at < packets->len; i++) {
    guint len = MIN (sizes[i % G_N_ELEMENTS (sizes)], packets->len - at);

    g_assert_true (ts_framer_push (&framer, packets->data + at, len, out));
    at += len;
  }
  g_assert_cmpmem (out->data, out->len, packets->data, packets->len);
  g_byte_array_unref (out);
  g_byte_array_unref (packets);
}

// What is taken behind a gap is whole.
static void
a_lost_datagram_costs_its_packets_only (void)
{
  GByteArray *packets = make_packets (), *out;
  guint refused, lost = 5 * 1472, first = lost / TS_FRAMER_PACKET * TS_FRAMER_PACKET;
  guint next = (lost + 1472 + TS_FRAMER_PACKET - 1) / TS_FRAMER_PACKET * TS_FRAMER_PACKET;

  out = push_all (packets, 1472, 5, &refused);
  g_assert_cmpuint (refused, ==, 0);
  g_assert_cmpmem (out->data, first, packets->data, first);
  g_assert_cmpmem (out->data + first, out->len - first, packets->data + next, packets->len - next);
  g_byte_array_unref (out);
  g_byte_array_unref (packets);
}

static void
rtp_headers_are_taken_off (void)
{
  GByteArray *packets = make_packets (), *out = g_byte_array_new ();
  TsFramer framer = { 0 };

  for (guint at = 0; at + 1316 <= packets->len; at += 1316) {
    guint8 datagram[RTP + 1316] = { 0x80, 33 };

    memcpy (datagram + RTP, packets->data + at, 1316);
    g_assert_true (ts_framer_push (&framer, datagram, sizeof datagram, out));
  }
  g_assert_cmpmem (out->data, out->len, packets->data, packets->len / 1316 * 1316);
  g_byte_array_unref (out);
  g_byte_array_unref (packets);
}

// A rest of 156 bytes, and a datagram whose first bytes are a header of RTP with 5 sources.
static void
a_packet_that_looks_like_rtp_is_taken (void)
{
  GByteArray *packets = make_packets (), *out = g_byte_array_new ();
  TsFramer framer = { 0 };

  packets->data[3 * TS_FRAMER_PACKET + 156] = 0x85;
  g_assert_true (ts_framer_push (&framer, packets->data, 3 * TS_FRAMER_PACKET + 156, out));
  g_assert_true (ts_framer_push (
      &framer, packets->data + 3 * TS_FRAMER_PACKET + 156, 32 + 4 * TS_FRAMER_PACKET, out));
  g_assert_cmpmem (out->data, out->len, packets->data, 8 * TS_FRAMER_PACKET);
  g_byte_array_unref (out);
  g_byte_array_unref (packets);
}

static void
noise_gives_nothing (void)
{
  GByteArray *out = g_byte_array_new ();
  TsFramer framer = { 0 };
  GRand *chance = g_rand_new_with_seed (7);
  guint taken = 0;

  for (guint i = 0; i < 2000; i++) {
    guint8 datagram[1500];
    gsize len = (gsize) g_rand_int_range (chance, 0, sizeof datagram);

    for (gsize k = 0; k < len; k++)
      datagram[k] = k < len / 2 ? 0x47 : (guint8) g_rand_int (chance);
    taken += ts_framer_push (&framer, datagram, len, out);
    g_assert_cmpuint (out->len % TS_FRAMER_PACKET, ==, 0);
  }
  g_assert_cmpuint (taken, ==, 0);
  g_rand_free (chance);
  g_byte_array_unref (out);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/ts-framer/forms", all_forms_become_whole_packets);
  g_test_add_func (
      "/ts-framer/the-form-may-change-with-each-datagram", the_form_may_change_with_each_datagram);
  g_test_add_func ("/ts-framer/short", short_datagrams_between_are_taken);
  g_test_add_func ("/ts-framer/lost", a_lost_datagram_costs_its_packets_only);
  g_test_add_func ("/ts-framer/rtp", rtp_headers_are_taken_off);
  g_test_add_func ("/ts-framer/like-rtp", a_packet_that_looks_like_rtp_is_taken);
  g_test_add_func ("/ts-framer/noise", noise_gives_nothing);
  return g_test_run ();
}
