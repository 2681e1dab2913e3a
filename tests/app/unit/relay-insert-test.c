// SPDX-License-Identifier: LGPL-2.1-or-later

// A clip between two keyframes of a source.

#include "relay-sources.h"

#define SPS 7

static guint n_asked; // requests for the clip to begin

static void
note_asked (gpointer data, guint track, gint64 now)
{
  g_assert_cmpuint (track, ==, 0);
  n_asked++;
}

static void
free_nothing (gpointer data)
{
}

// Source `a` is the current one, `b` is the clip.
static void
set_up (Fixture *f, gconstpointer unused)
{
  n_asked = 0;
  f->relay = relay_new ();
  f->out = g_array_new (FALSE, FALSE, sizeof (Out));
  f->a = relay_source_new (f->relay, NULL, NULL);
  f->b = relay_source_new_clip (f->relay, NULL, NULL);
  begin (f->a);
  begin (f->b);
  relay_source_set_key_handler (f->b, note_asked, NULL, free_nothing);
  relay_add_sink (f->relay, &sink, f->out, G_MAXUINT32, 0);
}

static void
send_live (Fixture *f, gint64 from, gint64 to)
{
  for (gint64 now = from; now < to; now += FRAME)
    send_at (f->a, 1, 25, now, 0);
}

// A packet of a picture of the live source.
static void
send_piece (Fixture *f, guint8 type, guint16 seq, gint64 now, gboolean last)
{
  GstBuffer *packet = packet_new (type, seq, (guint32) (now / 1000 * VIDEO / 1000000 + 7777), 16);
  const guint8 second = last ? 0xe0 : 0x60;

  gst_buffer_fill (packet, 1, &second, 1);
  relay_push (f->a, 0, packet, now, RELAY_NO_BASE);
}

static gint64
last_time (Fixture *f, guint track, guint8 of)
{
  gint64 time = -1;

  for (guint i = 0; i < f->out->len; i++) {
    if (out_at (f, i).track == track && out_at (f, i).of == of)
      time = out_at (f, i).time;
  }
  return time;
}

static gint64
first_time (Fixture *f, guint track, guint8 of)
{
  for (guint i = 0; i < f->out->len; i++) {
    if (out_at (f, i).track == track && out_at (f, i).of == of)
      return out_at (f, i).time;
  }
  return -1;
}

// ---- tests ----

// Keyframes of the live source at 1, 2, 3 s ...
static void
a_clip_has_the_place_of_a_keyframe (Fixture *f, gconstpointer unused)
{
  gint64 zero;

  send_live (f, FRAME, 1500 * MS);
  zero = last_time (f, 0, 1) - 1480 * MS;
  g_assert_true (relay_insert (f->relay, f->b, 1500 * MS));
  send_live (f, 1520 * MS, 2 * SECOND);
  g_assert_cmpuint (n_asked, ==, 0);
  g_assert_true (relay_is_current (f->relay, f->a));
  send_live (f, 2 * SECOND, 2 * SECOND + 5 * FRAME);
  g_assert_cmpuint (n_asked, ==, 1);
  g_assert_true (relay_is_current (f->relay, f->b));
  for (gint64 now = 2 * SECOND; now < 5 * SECOND; now += FRAME) {
    send_at (f->a, 1, 25, now + 5 * FRAME, 0);
    send_at (f->b, 2, 25, now, 0);
  }
  // In the order of time, as though the keyframe had come.
  g_assert_cmpint (first_time (f, 0, 2) - last_time (f, 0, 1), ==, FRAME);
  g_assert_cmpint (last_time (f, 0, 1) - zero, ==, 2 * SECOND - FRAME);
  g_assert_cmpuint (count (f, 0, 2), ==, (guint) (3 * SECOND / FRAME));
  g_assert_cmpint (ABS (last_time (f, 0, 2) - last_time (f, 1, 2)), <=, MS);
  check_numbers (f);

  // The live source comes back at a keyframe, where it would be by now.
  relay_prefer (f->relay, f->a);
  send_live (f, 5200 * MS, 6 * SECOND);
  g_assert_false (relay_is_current (f->relay, f->a));
  send_live (f, 6 * SECOND, 7 * SECOND);
  g_assert_true (relay_is_current (f->relay, f->a));
  check_numbers (f);
  g_assert_cmpint (last_time (f, 0, 1) - zero, ==, 7 * SECOND - FRAME);
  g_assert_cmpint (ABS (last_time (f, 0, 1) - last_time (f, 1, 1)), <=, MS);
}

// The parameter sets before a keyframe belong to it. A frame that is none stays whole.
static void
the_packets_of_a_keyframe_go_together (Fixture *f, gconstpointer unused)
{
  guint before;

  send_live (f, FRAME, SECOND);
  before = count (f, 0, 1);
  g_assert_true (relay_insert (f->relay, f->b, SECOND));
  send_piece (f, SPS, 1025, 1000 * MS, FALSE);
  send_piece (f, DELTA, 1026, 1000 * MS, TRUE);
  g_assert_cmpuint (count (f, 0, 1), ==, before + 2);
  send_piece (f, DELTA, 1027, 1040 * MS, FALSE); // the next one begins without an end of it
  send_piece (f, SPS, 1028, 1080 * MS, FALSE);
  g_assert_cmpuint (count (f, 0, 1), ==, before + 3);
  send_piece (f, KEY, 1029, 1080 * MS, TRUE);
  g_assert_true (relay_is_current (f->relay, f->b));
  g_assert_cmpuint (count (f, 0, 1), ==, before + 3);
  g_assert_cmpuint (n_asked, ==, 1);
}

static void
a_clip_that_is_withdrawn_holds_nothing_back (Fixture *f, gconstpointer unused)
{
  send_live (f, FRAME, SECOND);
  g_assert_true (relay_insert (f->relay, f->b, SECOND));
  send_piece (f, SPS, 1025, 1000 * MS, FALSE);
  relay_insert (f->relay, NULL, SECOND);
  send_piece (f, KEY, 1026, 1000 * MS, TRUE);
  g_assert_true (relay_is_current (f->relay, f->a));
  g_assert_cmpuint (count (f, 0, 1), ==, 26);
  g_assert_cmpuint (n_asked, ==, 0);
}

// A clip that never comes, and a live source that begins anew.
static void
a_clip_that_sends_nothing_loses_no_number (Fixture *f, gconstpointer unused)
{
  send_live (f, FRAME, SECOND);
  g_assert_true (relay_insert (f->relay, f->b, SECOND));
  send_live (f, SECOND, 2 * SECOND);
  g_assert_true (relay_is_current (f->relay, f->b));
  relay_source_end (f->b);
  begin (f->a);
  send_live (f, 2 * SECOND, 3 * SECOND);
  g_assert_true (relay_is_current (f->relay, f->a));
  check_numbers (f);
}

static void
a_clip_of_other_tracks_does_not_wait (Fixture *f, gconstpointer unused)
{
  GPtrArray *caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);

  g_ptr_array_add (caps,
      gst_caps_from_string (
          "application/x-rtp, media=video, encoding-name=H264, clock-rate=90000, payload=96"));
  relay_source_begin (f->b, caps);
  g_assert_false (relay_insert (f->relay, f->b, 0));
  // Nor once the live source has other tracks.
  begin (f->b);
  g_assert_true (relay_insert (f->relay, f->b, 0));
  relay_source_begin (f->a, caps);
  send_live (f, FRAME, 3 * SECOND);
  g_assert_true (relay_is_current (f->relay, f->a));
  g_ptr_array_unref (caps);
}

// By the sender reports, the sound of the live source is 100 ms later than its arrival says. The
// clip's is moved alike, so that sinks which follow the reports put both right.
static void
a_clip_keeps_the_clock_of_the_source (Fixture *f, gconstpointer unused)
{
  const WeirNtpMap video = {
    .known = TRUE, .ntp = (guint64) 5 << 32, .timestamp = 7777, .ssrc = 16
  };
  const WeirNtpMap audio = { .known = TRUE,
    .ntp = ((guint64) 5 << 32) + ((guint64) 1 << 32) / 10,
    .timestamp = 5555,
    .ssrc = 17 };
  RelaySync before, during;

  send_live (f, FRAME, SECOND);
  relay_set_ntp_map (f->a, 0, &video);
  relay_set_ntp_map (f->a, 1, &audio);
  relay_get_sync (f->relay, &before);
  g_assert_true (before.known);
  g_assert_cmpint (ABS (before.offsets[1] - 100 * MS), <, MS);
  g_assert_true (relay_insert (f->relay, f->b, SECOND));
  send_live (f, SECOND, SECOND + FRAME);
  for (gint64 now = SECOND; now < 2 * SECOND; now += FRAME)
    send_at (f->b, 2, 25, now, 0);
  relay_get_sync (f->relay, &during);
  g_assert_cmpint (ABS (during.offsets[1] - before.offsets[1]), <, MS);
  g_assert_cmpint (ABS (during.clock - before.clock), <, MS);
  g_assert_cmpint (ABS (last_time (f, 1, 2) + during.offsets[1] - last_time (f, 0, 2)), <=, MS);
}

#define SPROP "Z0LAHtkDxWhAAAADAEAAAAwDxYuS,aMuMsg=="

// A live source whose parameter sets are in its description only: those of the clip are replaced.
static void
sets_of_a_description_are_sent_after_a_clip (Fixture *f, gconstpointer unused)
{
  guint at;

  for (guint i = 0; i < 2; i++) {
    GPtrArray *caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);

    g_ptr_array_add (
        caps, gst_caps_from_string (
                  "application/x-rtp, media=video, encoding-name=H264, "
                  "clock-rate=90000, payload=96, sprop-parameter-sets=(string)\"" SPROP "\""));
    g_ptr_array_add (caps,
        gst_caps_from_string (
            "application/x-rtp, media=audio, encoding-name=OPUS, clock-rate=48000, payload=97"));
    relay_source_begin (i == 0 ? f->a : f->b, caps);
    g_ptr_array_unref (caps);
  }
  send_live (f, FRAME, SECOND);
  g_assert_true (relay_insert (f->relay, f->b, SECOND));
  send_live (f, SECOND, SECOND + FRAME);
  // The clip has sets of its own in its packets.
  for (guint16 i = 0; i < 3; i++) {
    static const guint8 types[] = { SPS, 8, KEY };

    relay_push (f->b, 0, packet_new (types[i], i, 7777u * 2, 32), SECOND + i, RELAY_NO_BASE);
  }
  relay_prefer (f->relay, f->a);
  send_live (f, SECOND + FRAME, 2 * SECOND);
  at = f->out->len;
  send_live (f, 2 * SECOND, 2 * SECOND + 5 * FRAME);
  g_assert_true (relay_is_current (f->relay, f->a));
  while (out_at (f, at).track != 0)
    at++;
  // Two sets and the keyframe have one time, and the numbers go on.
  g_assert_cmpint (out_at (f, at).type, ==, 7);
  g_assert_cmpint (out_at (f, at + 1).type, ==, 8);
  while (out_at (f, at + 2).track != 0)
    at++;
  g_assert_cmpint (out_at (f, at + 2).type, ==, KEY);
  g_assert_cmpint (out_at (f, at + 2).time, ==, out_at (f, at + 1).time);
  g_assert_cmpuint (out_at (f, at + 2).rtp.seq, ==, (guint16) (out_at (f, at + 1).rtp.seq + 1));
}

#define ADD(name, function)                                                                        \
  g_test_add ("/relay-insert/" name, Fixture, NULL, set_up, function, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  gst_init (&argc, &argv);
  ADD ("a-clip-has-the-place-of-a-keyframe", a_clip_has_the_place_of_a_keyframe);
  ADD ("the-packets-of-a-keyframe-go-together", the_packets_of_a_keyframe_go_together);
  ADD ("a-clip-that-is-withdrawn-holds-nothing-back", a_clip_that_is_withdrawn_holds_nothing_back);
  ADD ("a-clip-that-sends-nothing-loses-no-number", a_clip_that_sends_nothing_loses_no_number);
  ADD ("a-clip-of-other-tracks-does-not-wait", a_clip_of_other_tracks_does_not_wait);
  ADD ("a-clip-keeps-the-clock-of-the-source", a_clip_keeps_the_clock_of_the_source);
  ADD ("sets-of-a-description-are-sent-after-a-clip", sets_of_a_description_are_sent_after_a_clip);
  return g_test_run ();
}
