// SPDX-License-Identifier: LGPL-2.1-or-later
#include "srtguard.h"

#include <arpa/inet.h>
#include <glib.h>
#include <netinet/in.h>
#include <unistd.h>

#define FULL 352 // words of extensions in the longest datagram

typedef struct {
  guint8 data[SRT_DATAGRAM_MAX];
  gsize len;
} Datagram;

static int pair[2];

static void
put (Datagram *self, gsize at, guint32 word)
{
  for (guint i = 0; i < 4; i++)
    self->data[at + i] = (guint8) (word >> (24 - 8 * i));
}

// A control packet with a content of `n` words, all `filler`.
static Datagram
control (guint type, guint extended, guint n, guint32 filler)
{
  Datagram self = { .len = 16 + 4 * n };

  put (&self, 0, 0x80000000 | type << 16 | extended);
  for (guint i = 0; i < n; i++)
    put (&self, 16 + 4 * i, filler);
  return self;
}

static Datagram
handshake (guint32 version)
{
  Datagram self = control (0, 0, 12, 0);

  put (&self, 16, version);
  put (&self, 24, 0x12345678);
  put (&self, 28, 1500);
  put (&self, 32, 8192);
  put (&self, 36, version == 5 ? 0xffffffff : 1);
  return self;
}

// Adds an extension whose head says `claimed` words, with `n` words, all `filler`.
static void
extend (Datagram *self, guint kind, guint claimed, guint n, guint32 filler)
{
  put (self, self->len, kind << 16 | claimed);
  self->len += 4;
  for (guint i = 0; i < n; i++, self->len += 4)
    put (self, self->len, filler);
}

static void
extend_keys (Datagram *self, guint words, guint flags, guint salt, guint key)
{
  gsize at = self->len + 4;

  extend (self, 3, words, words, 0x12202900);
  self->data[at + 3] = (guint8) flags;
  self->data[at + 14] = (guint8) salt;
  self->data[at + 15] = (guint8) key;
}

static Datagram
one (guint kind, guint claimed, guint n, guint32 filler)
{
  Datagram self = handshake (5);

  extend (&self, kind, claimed, n, filler);
  return self;
}

static Datagram
keys (guint words, guint flags, guint salt, guint key)
{
  Datagram self = handshake (5);

  extend_keys (&self, words, flags, salt, key);
  return self;
}

static Datagram
changed (gsize at, guint32 word)
{
  Datagram self = handshake (5);

  put (&self, at, word);
  return self;
}

static Datagram
cut (Datagram self, gsize len)
{
  self.len = len;
  return self;
}

static Datagram
whole_conclusion (void)
{
  Datagram self = one (1, 3, 3, 0x00010501);

  extend_keys (&self, 18, 1, 4, 8);
  extend (&self, 5, 128, 128, 0x64616572);
  extend (&self, 6, 1, 1, 0x6576696c);
  extend (&self, 7, 2, 2, 0x2c636566);
  extend (&self, 8, 2, 2, 0x40000001);
  return self;
}

static Datagram
many (guint n)
{
  Datagram self = handshake (5);

  for (guint i = 0; i < n; i++)
    extend (&self, 5, 1, 1, 0x64616572);
  return self;
}

static Datagram
data_packet (gsize len)
{
  return (Datagram) { { 0x7f, 0xff }, len };
}

#define FILTER_TEXT 0x2c636566 // "fec,", the last byte first

static void
each_control_packet_is_judged (void)
{
  const struct {
    const gchar *what;
    gboolean passes;
    Datagram datagram;
  } cases[] = {
    { "a request for a cookie", TRUE, handshake (4) },
    { "an answer without extensions", TRUE, handshake (5) },
    { "an answer with all extensions", TRUE, whole_conclusion () },
    { "eight extensions", TRUE, many (8) },
    { "nine extensions", FALSE, many (9) },
    { "a handshake that is cut", FALSE, cut (handshake (4), 60) },
    { "a handshake with half a word more", FALSE, cut (handshake (5), 66) },
    { "version 3", FALSE, handshake (3) },
    { "version 6", FALSE, handshake (6) },
    { "version 0", FALSE, handshake (0) },
    { "the last sequence number", FALSE, changed (24, 0x7fffffff) },
    { "a negative sequence number", FALSE, changed (24, 0x80000000) },
    { "packets of 75 bytes", FALSE, changed (28, 75) },
    { "packets of 76 bytes", TRUE, changed (28, 76) },
    { "packets of 64 kB", FALSE, changed (28, 65536) },
    { "a window of one", FALSE, changed (32, 1) },
    { "a negative window", FALSE, changed (32, 0x80000000) },
    { "an extension that is cut", FALSE, one (5, 3, 2, 0x64616572) },
    { "an extension that is its head", FALSE, one (5, 0, 0, 0) },
    { "the longest length", FALSE, one (5, 0xffff, 2, 0x64616572) },
    { "a short request", FALSE, one (1, 2, 2, 0) },
    { "a long request", TRUE, one (1, 4, 4, 0) },
    { "kind 0", FALSE, one (0, 1, 1, 0) },
    { "a listener's answer", FALSE, one (2, 3, 3, 0x00010501) },
    { "a listener's answer to keys", FALSE, one (4, 1, 1, 0) },
    { "an unknown kind", FALSE, one (9, 1, 1, 0) },
    { "a stream id of 512 bytes", TRUE, one (5, 128, 128, 0x64616572) },
    { "a stream id of 516 bytes", FALSE, one (5, 129, 129, 0x64616572) },
    { "a congestion control of 20 bytes", FALSE, one (6, 5, 5, 0x6576696c) },
    { "a packet filter of one zero word", FALSE, one (7, 1, 1, 0) },
    { "a packet filter of zeros", FALSE, one (7, 16, 16, 0) },
    { "a packet filter that begins with a zero", FALSE, one (7, 1, 1, 0x2c636500) },
    { "a packet filter without content", FALSE, one (7, 0, 0, 0) },
    { "a packet filter", TRUE, one (7, 1, 1, FILTER_TEXT) },
    { "a packet filter of 68 bytes", FALSE, one (7, 17, 17, FILTER_TEXT) },
    { "half a group", FALSE, one (8, 1, 1, 0) },
    { "a key of 128 bits", TRUE, keys (14, 1, 4, 4) },
    { "a key of 192 bits", TRUE, keys (16, 2, 4, 6) },
    { "two keys of 256 bits", TRUE, keys (26, 3, 4, 8) },
    { "no key", FALSE, keys (14, 0, 4, 4) },
    { "a key of 256 bits without room", FALSE, keys (17, 1, 4, 8) },
    { "two keys with room for one", FALSE, keys (18, 3, 4, 8) },
    { "a key of 160 bits", FALSE, keys (15, 1, 4, 5) },
    { "a key of 1020 bytes", FALSE, keys (26, 1, 4, 255) },
    { "a salt of 1020 bytes", FALSE, keys (26, 1, 255, 4) },
    { "keys beyond libsrt's array", FALSE, keys (27, 1, 4, 4) },
    { "keys that fill the datagram", FALSE, keys (FULL - 1, 1, 4, 4) },
    { "half a header", FALSE, cut (control (1, 0, 0, 0), 8) },
    { "a keepalive", TRUE, control (1, 0, 0, 0) },
    { "a short acknowledgement", TRUE, control (2, 0, 1, 0) },
    { "a small acknowledgement", TRUE, control (2, 0, 4, 0) },
    { "an acknowledgement", TRUE, control (2, 0, 7, 0) },
    { "an empty acknowledgement", FALSE, control (2, 0, 0, 0) },
    { "an acknowledgement that is cut", FALSE, control (2, 0, 3, 0) },
    { "a loss report", TRUE, control (3, 0, 1, 7) },
    { "an empty loss report", FALSE, control (3, 0, 0, 0) },
    { "a loss report that ends within a range", FALSE, control (3, 0, 2, 0x80000007) },
    { "a loss report of half a word", FALSE, cut (control (3, 0, 2, 7), 22) },
    { "a shutdown", TRUE, control (5, 0, 1, 0) },
    { "an acknowledged acknowledgement", TRUE, control (6, 0, 1, 0) },
    { "a drop request", TRUE, control (7, 0, 2, 0) },
    { "a drop request of one number", FALSE, control (7, 0, 1, 0) },
    { "an error", TRUE, control (8, 0, 1, 0) },
    { "an unknown type", FALSE, control (9, 0, 1, 0) },
    { "new keys", TRUE, control (0x7fff, 3, 18, 0) },
    { "new keys that failed", TRUE, control (0x7fff, 4, 1, 0) },
    { "new keys without content", FALSE, control (0x7fff, 3, 0, 0) },
    { "new keys beyond libsrt's array", FALSE, control (0x7fff, 3, 27, 0) },
    { "a handshake of SRT 1.2", FALSE, control (0x7fff, 1, 3, 0) },
    { "data", TRUE, data_packet (1332) },
    { "three bytes", FALSE, data_packet (3) },
    { "nothing", FALSE, data_packet (0) },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    const Datagram *d = &cases[i].datagram;

    g_test_message ("%s", cases[i].what);
    g_assert_cmpint (srt_datagram_fits (d->data, d->len), ==, cases[i].passes);
    g_assert_cmpint (srt_pair_passes (pair, d->data, d->len), ==, cases[i].passes);
  }
}

// Sets one word after the other to numbers at the borders, and cuts, so that each test of the
// filter decides somewhere.
static void
the_filter_agrees_with_a_plain_reader (void)
{
  static const guint32 numbers[] = { 0, 1, 2, 3, 4, 5, 75, 76, 0xffff, 0x10000, 0x10003, 0x30012,
    0x3001a, 0x50001, 0x50080, 0x50081, 0x60004, 0x70001, 0x7000f, 0x7fffffff, 0x80000000,
    0xffff0003, 0xffffffff };
  const Datagram whole = whole_conclusion ();

  for (gsize at = 0; at + 4 <= whole.len; at += 2) {
    for (guint i = 0; i < G_N_ELEMENTS (numbers); i++) {
      Datagram d = whole;

      put (&d, at, numbers[i]);
      g_assert_cmpint (
          srt_pair_passes (pair, d.data, d.len), ==, srt_datagram_fits (d.data, d.len));
      g_assert_cmpint (srt_pair_passes (pair, d.data, at), ==, srt_datagram_fits (d.data, at));
    }
  }
}

static void
a_udp_socket_drops_what_the_filter_refuses (void)
{
  const Datagram bad = one (7, 1, 1, 0), good = one (7, 1, 1, FILTER_TEXT);
  struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
  gint taker = socket (AF_INET, SOCK_DGRAM, 0), sender = socket (AF_INET, SOCK_DGRAM, 0);
  socklen_t len = sizeof own;
  guint8 got[SRT_DATAGRAM_MAX];

  g_assert_true (srt_guard_attach (taker, SRT_GUARD_UDP));
  g_assert_cmpint (bind (taker, (struct sockaddr *) &own, len), ==, 0);
  g_assert_cmpint (getsockname (taker, (struct sockaddr *) &own, &len), ==, 0);
  g_assert_cmpint (connect (sender, (struct sockaddr *) &own, len), ==, 0);
  g_assert_cmpint (send (sender, bad.data, bad.len, 0), ==, bad.len);
  g_assert_cmpint (send (sender, good.data, good.len, 0), ==, good.len);
  g_assert_cmpint (recv (taker, got, sizeof got, 0), ==, good.len);
  g_assert_cmpint (memcmp (got, good.data, good.len), ==, 0);
  g_assert_cmpint (recv (taker, got, sizeof got, MSG_DONTWAIT), ==, -1);
  close (taker);
  close (sender);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_assert_true (srt_filtered_pair (pair));
  g_test_add_func ("/srt-guard/each_control_packet_is_judged", each_control_packet_is_judged);
  g_test_add_func (
      "/srt-guard/the_filter_agrees_with_a_plain_reader", the_filter_agrees_with_a_plain_reader);
  g_test_add_func ("/srt-guard/a_udp_socket_drops_what_the_filter_refuses",
      a_udp_socket_drops_what_the_filter_refuses);
  return g_test_run ();
}
