// SPDX-License-Identifier: LGPL-2.1-or-later
#include "isolate/wire.h"

#include <string.h>

#include "relay/relay.h"

#define RTP 30

typedef struct {
  guint n_tracks, n_packets, n_mapped, n_flows, asked;
  guint32 n_lost;
  GstCaps *caps; // of the last track
  gsize bytes;
  gboolean more;
  gint64 now;
  guint64 base;
  WeirNtpMap map;
  gchar *reason, *unfit;
  gint64 length;
  WeirCue cue;
} Seen;

static void
on_tracks (gpointer owner, GPtrArray *caps)
{
  Seen *seen = owner;

  seen->n_tracks = caps->len;
  gst_caps_replace (&seen->caps, g_ptr_array_index (caps, caps->len - 1));
}

static void
on_packet (gpointer owner, guint track, const WirePacket *packet)
{
  Seen *seen = owner;

  seen->n_packets++;
  seen->bytes += packet->len;
  seen->more = packet->more;
  seen->now = packet->now;
  seen->base = packet->base;
}

static void
on_mapped (gpointer owner, guint track, const WeirNtpMap *map)
{
  ((Seen *) owner)->n_mapped++;
  ((Seen *) owner)->map = *map;
}

static void
on_overflowed (gpointer owner, guint32 n)
{
  ((Seen *) owner)->n_lost += n;
}

static void
on_ended (gpointer owner, const gchar *reason)
{
  g_free (((Seen *) owner)->reason);
  ((Seen *) owner)->reason = g_strdup (reason);
}

static void
on_unfit (gpointer owner, const gchar *reason)
{
  g_free (((Seen *) owner)->unfit);
  ((Seen *) owner)->unfit = g_strdup (reason);
}

static void
on_track (gpointer owner, guint track, GstCaps *caps)
{
  gst_caps_replace (&((Seen *) owner)->caps, caps);
}

static void
on_flows (gpointer owner, guint track)
{
  ((Seen *) owner)->n_flows++;
}

static void
on_asked (gpointer owner, guint track)
{
  ((Seen *) owner)->asked = track;
}

static void
on_lasts (gpointer owner, gint64 length)
{
  ((Seen *) owner)->length = length;
}

static void
on_cue (gpointer owner, const WeirCue *cue)
{
  ((Seen *) owner)->cue = *cue;
}

static const WireHandler handler = { on_tracks, on_packet, on_mapped, on_overflowed, on_ended,
  on_track, on_flows, on_asked, on_unfit, on_lasts, on_cue };

static WireMessage message;

static void
put_tracks (const gchar *text, guint n)
{
  GPtrArray *caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);

  for (guint i = 0; i < n; i++)
    g_ptr_array_add (caps, gst_caps_from_string (text));
  wire_begin (&message, WIRE_TRACKS);
  wire_put_tracks (&message, caps);
  g_ptr_array_unref (caps);
}

static gboolean
put_packet (gsize len, gint64 now, guint64 base)
{
  GstBuffer *packet = gst_buffer_new_allocate (NULL, len, NULL);
  gboolean ok;

  gst_buffer_memset (packet, 0, 0x80, len);
  ok = wire_put_packet (&message, packet, now, base);
  gst_buffer_unref (packet);
  return ok;
}

static void
put_packets (guint track, guint n)
{
  wire_begin (&message, WIRE_PACKETS);
  wire_put (&message, track, 1);
  for (guint i = 0; i < n; i++)
    g_assert_true (put_packet (RTP + i, 1000 + i, 77));
}

static gboolean
reads (Seen *seen, guint n_tracks)
{
  // Of exactly this size, so that a sanitizer sees a read past the end.
  guint8 *copy = g_memdup2 (message.data, message.len);
  gboolean ok = wire_read (copy, message.len, n_tracks, &handler, seen);

  g_free (copy);
  return ok;
}

static void
clear (Seen *seen)
{
  gst_clear_caps (&seen->caps);
  g_free (seen->reason);
  g_free (seen->unfit);
}

#define H264                                                                                       \
  "application/x-rtp, media=video, payload=(int)96, clock-rate=(int)90000, encoding-name=H264, "   \
  "sprop-parameter-sets=\"Z0LAFdoFB+hAAAADAEAAAAyjxYuSAA==,aM4PyA==\", x-secret=no, ssrc=(uint)7"

static void
tracks_come_as_they_were_put (void)
{
  const GstStructure *s;
  Seen seen = { 0 };

  put_tracks (H264, 2);
  g_assert_true (reads (&seen, 0));
  g_assert_cmpuint (seen.n_tracks, ==, 2);
  s = gst_caps_get_structure (seen.caps, 0);
  g_assert_cmpstr (gst_structure_get_string (s, "encoding-name"), ==, "H264");
  g_assert_cmpstr (gst_structure_get_string (s, "sprop-parameter-sets"), ==,
      "Z0LAFdoFB+hAAAADAEAAAAyjxYuSAA==,aM4PyA==");
  g_assert_false (gst_structure_has_field (s, "x-secret"));
  clear (&seen);
}

static void
packets_come_as_they_were_put (void)
{
  Seen seen = { 0 };

  put_packets (1, 3);
  g_assert_true (reads (&seen, 2));
  g_assert_cmpuint (seen.n_packets, ==, 3);
  g_assert_cmpuint (seen.bytes, ==, 3 * RTP + 1 + 2);
  g_assert_false (seen.more);
  g_assert_cmpint (seen.now, ==, 1002);
  g_assert_cmpuint (seen.base, ==, 77);
  clear (&seen);
}

static void
a_full_message_takes_no_packet (void)
{
  guint n = 0;
  gsize len;

  wire_begin (&message, WIRE_PACKETS);
  wire_put (&message, 0, 1);
  while (put_packet (1200, 0, RELAY_NO_BASE))
    n++;
  g_assert_cmpuint (n, ==, (WIRE_MAX - 2) / 1218);
  len = message.len;
  g_assert_false (put_packet (65535, 0, 0));
  g_assert_cmpuint (message.len, ==, len);
  g_assert_false (message.failed);
}

static void
other_messages_come_as_they_were_put (void)
{
  Seen seen = { 0 };

  wire_begin (&message, WIRE_NTP);
  wire_put (&message, 1, 1);
  wire_put (&message, 0x1122334455667788, 8);
  wire_put (&message, 5, 4);
  wire_put (&message, 6, 4);
  g_assert_true (reads (&seen, 2));
  g_assert_false (reads (&seen, 1));
  g_assert_cmpuint (seen.n_mapped, ==, 1);
  g_assert_true (seen.map.known && seen.map.ntp == 0x1122334455667788 && seen.map.timestamp == 5
                 && seen.map.ssrc == 6);
  wire_begin (&message, WIRE_OVERFLOW);
  wire_put (&message, 12, 4);
  g_assert_true (reads (&seen, 0));
  g_assert_cmpuint (seen.n_lost, ==, 12);
  wire_begin (&message, WIRE_ENDED);
  wire_put_text (&message, "gone\n\xff");
  g_assert_true (reads (&seen, 0));
  g_assert_cmpstr (seen.reason, ==, "gone?\357\277\275");
  g_assert_null (seen.unfit);
  wire_begin (&message, WIRE_UNFIT);
  wire_put_text (&message, "no\ntrack");
  g_assert_true (reads (&seen, 0));
  g_assert_cmpstr (seen.unfit, ==, "no?track");
  message.data[message.len++] = 0;
  g_assert_false (reads (&seen, 0));
  wire_begin (&message, WIRE_LASTS);
  wire_put (&message, 10000000000, 8);
  g_assert_true (reads (&seen, 0));
  g_assert_cmpint (seen.length, ==, 10000000000);
  message.len--;
  g_assert_false (reads (&seen, 0));
  wire_begin (&message, WIRE_LASTS);
  wire_put (&message, G_MAXUINT64, 8);
  g_assert_false (reads (&seen, 0));
  g_assert_cmpint (seen.length, ==, 10000000000);
  wire_begin (&message, WIRE_CUE);
  wire_put_cue (&message, &(WeirCue) { 7, FALSE, TRUE, 4000000000, 10000000000 });
  g_assert_true (reads (&seen, 0));
  g_assert_true (seen.cue.event == 7 && seen.cue.out && !seen.cue.cancel);
  g_assert_true (seen.cue.delay == 4000000000 && seen.cue.duration == 10000000000);
  message.data[6] = 0xff; // a negative time
  g_assert_false (reads (&seen, 0));
  clear (&seen);
}

static void
put_track (guint track)
{
  GstCaps *caps = gst_caps_from_string (H264);

  wire_begin (&message, WIRE_TRACK);
  wire_put (&message, track, 1);
  wire_put_track (&message, caps);
  gst_caps_unref (caps);
}

static void
messages_of_a_stage_come_as_they_were_put (void)
{
  Seen seen = { 0 };

  put_track (1);
  g_assert_false (reads (&seen, 1));
  g_assert_null (seen.caps);
  g_assert_true (reads (&seen, 2));
  g_assert_cmpstr (
      gst_structure_get_string (gst_caps_get_structure (seen.caps, 0), "media"), ==, "video");
  message.data[message.len++] = 0;
  g_assert_false (reads (&seen, 2));
  for (WireType type = WIRE_FLOWS; type <= WIRE_ASKED; type++) {
    wire_begin (&message, type);
    g_assert_false (reads (&seen, 2));
    wire_put (&message, 1, 1);
    g_assert_false (reads (&seen, 1));
    g_assert_true (reads (&seen, 2));
    wire_put (&message, 1, 1);
    g_assert_false (reads (&seen, 2));
  }
  g_assert_cmpuint (seen.n_flows, ==, 1);
  g_assert_cmpuint (seen.asked, ==, 1);
  clear (&seen);
}

static void
messages_without_a_function_are_refused (void)
{
  const WireHandler none = { 0 };

  for (guint type = 0; type < 20; type++) {
    if (type == WIRE_ALIVE)
      continue;
    wire_begin (&message, (WireType) type);
    wire_put (&message, 0, 4);
    g_assert_false (wire_read (message.data, message.len, 2, &none, NULL));
  }
}

// Each cut of a message is malformed, except one that ends between two packets.
static void
cut_messages_are_refused (void)
{
  Seen seen = { 0 };
  gsize len, first;

  put_packets (0, 1);
  first = message.len;
  put_packets (0, 2);
  len = message.len;
  for (message.len = 0; message.len < len; message.len++)
    g_assert_cmpint (reads (&seen, 1), ==, message.len == first || message.len == 2);
  put_tracks (H264, 1);
  len = message.len;
  for (message.len = 0; message.len < len; message.len++)
    g_assert_false (reads (&seen, 1));
  g_assert_null (seen.caps);
  message.len = len;
  message.data[message.len++] = 0;
  g_assert_false (reads (&seen, 1));
  clear (&seen);
}

static void
put_field (const gchar *name, const gchar *value)
{
  wire_begin (&message, WIRE_TRACKS);
  wire_put (&message, 1, 1);
  wire_put (&message, 4, 1);
  for (guint i = 0; i < 2; i++) {
    wire_put_text (&message, i ? "media" : "encoding-name");
    wire_put (&message, 's', 1);
    wire_put_text (&message, "x");
  }
  wire_put_text (&message, "clock-rate");
  wire_put (&message, 'i', 1);
  wire_put (&message, 90000, 4);
  wire_put_text (&message, name);
  wire_put (&message, 's', 1);
  wire_put_text (&message, value);
}

static void
hostile_values_are_refused (void)
{
  Seen seen = { 0 };
  gchar *large = g_strnfill (9000, 'x');

  put_field ("payload-name", "fine");
  g_assert_true (reads (&seen, 0));
  put_field ("payload-name", "a\r\nb");
  g_assert_false (reads (&seen, 0));
  put_field ("payload\nname", "x");
  g_assert_false (reads (&seen, 0));
  put_field ("", "x");
  g_assert_false (reads (&seen, 0));
  put_field ("payload-name", large);
  g_assert_false (reads (&seen, 0));
  put_field (large, "x");
  g_assert_false (reads (&seen, 0));
  g_free (large);
  put_tracks ("application/x-rtp, media=video, clock-rate=(int)0, encoding-name=H264", 1);
  g_assert_false (reads (&seen, 0));
  put_tracks ("application/x-rtp, clock-rate=(int)90000, encoding-name=H264", 1);
  g_assert_false (reads (&seen, 0));
  put_tracks (H264, RELAY_MAX_TRACKS + 1);
  g_assert_false (reads (&seen, 0));
  put_tracks (H264, 0);
  g_assert_false (reads (&seen, 0));
  clear (&seen);
}

static void
packets_of_unknown_tracks_are_refused (void)
{
  Seen seen = { 0 };

  put_packets (1, 1);
  g_assert_false (reads (&seen, 1));
  g_assert_false (reads (&seen, 0));
  wire_begin (&message, WIRE_PACKETS);
  wire_put (&message, 0, 1);
  g_assert_true (put_packet (RTP, 0, G_MAXUINT32 + G_GUINT64_CONSTANT (1)));
  g_assert_false (reads (&seen, 1));
  g_assert_cmpuint (seen.n_packets, ==, 0);
  clear (&seen);
}

static void
read_changed_copies (GRand *chance, Seen *seen)
{
  static WireMessage seed;

  memcpy (seed.data, message.data, message.len);
  seed.len = message.len;
  for (guint i = 0; i < 20000; i++) {
    message.len = 1 + (gsize) g_rand_int_range (chance, 0, (gint32) seed.len);
    memcpy (message.data, seed.data, message.len);
    for (gint n = g_rand_int_range (chance, 1, 9); n > 0; n--)
      message.data[g_rand_int_range (chance, 0, (gint32) message.len)] =
          (guint8) g_rand_int_range (chance, 0, 256);
    reads (seen, 2);
  }
}

static void
changed_messages_do_no_harm (void)
{
  GRand *chance = g_rand_new_with_seed (1);
  Seen seen = { 0 };

  put_tracks (H264, 2);
  read_changed_copies (chance, &seen);
  put_packets (1, 5);
  read_changed_copies (chance, &seen);
  put_track (1);
  read_changed_copies (chance, &seen);
  wire_begin (&message, WIRE_ENDED);
  wire_put_text (&message, "the upstream ended");
  read_changed_copies (chance, &seen);
  g_assert_cmpuint (seen.n_packets, >, 0);
  g_rand_free (chance);
  clear (&seen);
}

// A worker must not fill the memory with names, which are never freed. The last test: the names are
// then used up.
static void
names_are_limited (void)
{
  Seen seen = { 0 };
  guint n = 0;

  for (gboolean ok = TRUE; ok && n < 10000; n++) {
    gchar *name = g_strdup_printf ("name-%u", n);

    put_field (name, "x");
    ok = reads (&seen, 0);
    g_free (name);
  }
  g_assert_cmpuint (n, <, 2000);
  put_field ("payload-name", "known");
  g_assert_true (reads (&seen, 0));
  clear (&seen);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/wire/tracks-come-as-they-were-put", tracks_come_as_they_were_put);
  g_test_add_func ("/wire/packets-come-as-they-were-put", packets_come_as_they_were_put);
  g_test_add_func ("/wire/a-full-message-takes-no-packet", a_full_message_takes_no_packet);
  g_test_add_func (
      "/wire/other-messages-come-as-they-were-put", other_messages_come_as_they_were_put);
  g_test_add_func (
      "/wire/messages-of-a-stage-come-as-they-were-put", messages_of_a_stage_come_as_they_were_put);
  g_test_add_func (
      "/wire/messages-without-a-function-are-refused", messages_without_a_function_are_refused);
  g_test_add_func ("/wire/cut-messages-are-refused", cut_messages_are_refused);
  g_test_add_func ("/wire/hostile-values-are-refused", hostile_values_are_refused);
  g_test_add_func (
      "/wire/packets-of-unknown-tracks-are-refused", packets_of_unknown_tracks_are_refused);
  g_test_add_func ("/wire/changed-messages-do-no-harm", changed_messages_do_no_harm);
  g_test_add_func ("/wire/names-are-limited", names_are_limited);
  return g_test_run ();
}
