// SPDX-License-Identifier: LGPL-2.1-or-later

// A warm source, which replaces a dead one at its newest join point.

#include "relay-sources.h"

// Source `a` is the current one, `b` is warm.
static void
set_up (Fixture *f, gconstpointer unused)
{
  f->relay = relay_new ();
  f->out = g_array_new (FALSE, FALSE, sizeof (Out));
  f->a = relay_source_new (f->relay, NULL, NULL);
  f->b = relay_source_new (f->relay, NULL, NULL);
  begin (f->a);
  relay_keep_warm (f->relay, f->b);
  begin (f->b);
  relay_add_sink (f->relay, &sink, f->out, G_MAXUINT32, 0);
}

// Both sources send from `from` until before `to`. The keyframes of `b` are `gop` frames apart.
static void
send_both (Fixture *f, guint gop, gint64 from, gint64 to)
{
  for (gint64 now = from; now < to; now += FRAME) {
    send_at (f->a, 1, 25, now, 0);
    send_at (f->b, 2, gop, now, 0);
  }
}

// ---- tests ----

// Keyframes of the warm source at 2, 4, 6 s ...; the first source dies at 5.6 s.
static void
a_dead_source_is_replaced_at_the_last_join_point (Fixture *f, gconstpointer unused)
{
  gint64 dead = 5600 * MS, now = dead + 200 * MS;
  guint before, n_audio, next = 0;
  gint64 live;

  send_both (f, 50, FRAME, dead);
  before = f->out->len;
  live = out_at (f, before - 1).time;
  for (gint64 t = dead; t < now; t += FRAME)
    send_at (f->b, 2, 50, t, 0);
  g_assert_cmpuint (f->out->len, ==, before);

  g_assert_true (relay_fail_over (f->relay, f->b, now));
  g_assert_true (relay_is_current (f->relay, f->b));
  // Sound without a gap, and the keyframe in place of the present picture.
  n_audio = (guint) ((now - dead) / FRAME);
  g_assert_cmpuint (f->out->len, ==, before + n_audio + 1);
  while (out_at (f, before + next).track == 1)
    next++;
  g_assert_cmpuint (out_at (f, before + next).rtp.seq, >, 0);
  g_assert_cmpint (out_at (f, before + next).time - live, ==, now - dead + FRAME);
  for (gint64 t = now; t < now + 2 * SECOND; t += FRAME)
    send_at (f->b, 2, 50, t, 0);
  check_numbers (f);
  // All frames since the keyframe at 4 s, and none of the first source.
  g_assert_cmpuint (count (f, 0, 2), ==, (guint) ((now + 2 * SECOND - 4 * SECOND) / FRAME));
  // At the live edge again, picture and sound at the same time.
  g_assert_cmpint (
      ABS (out_at (f, f->out->len - 1).time - out_at (f, f->out->len - 2).time), <, MS);
  g_assert_cmpint (out_at (f, f->out->len - 1).time - live, ==, now + 2 * SECOND - dead);
}

// Eight times as fast: 4 s of pictures take 4/7 s, in which time passes evenly.
static void
the_pictures_since_the_join_point_are_sent_fast (Fixture *f, gconstpointer unused)
{
  gint64 dead = 4 * SECOND, caught_up = 0;

  send_both (f, 10000, 10000 * FRAME - 4 * SECOND, 10000 * FRAME);
  dead = 10000 * FRAME;
  send_both (f, 10000, dead, dead + 4 * SECOND);
  g_array_set_size (f->out, 0);
  dead += 4 * SECOND;
  g_assert_true (relay_fail_over (f->relay, f->b, dead));
  g_assert_cmpuint (count (f, 0, 2), ==, 1);
  for (gint64 t = dead; t < dead + 2 * SECOND; t += FRAME) {
    guint before = count (f, 0, 2), n;

    send_at (f->b, 2, 10000, t, 0);
    n = count (f, 0, 2) - before;
    g_assert_cmpuint (n, <=, 9);
    if (n == 1 && t > dead + FRAME && !caught_up)
      caught_up = t;
  }
  check_numbers (f);
  g_assert_cmpint (caught_up - dead, >=, 4 * SECOND / 7 - FRAME);
  g_assert_cmpint (caught_up - dead, <=, 4 * SECOND / 7 + 2 * FRAME);
}

static void
a_warm_source_takes_over_only_when_told (Fixture *f, gconstpointer unused)
{
  send_both (f, 25, FRAME, 3 * SECOND);
  for (gint64 t = 3 * SECOND; t < 10 * SECOND; t += FRAME)
    send_at (f->b, 2, 25, t, 0);
  g_assert_true (relay_is_current (f->relay, f->a));
  g_assert_cmpuint (count (f, 0, 2) + count (f, 1, 2), ==, 0);
  // Without a source to replace it, nothing changes.
  relay_keep_warm (f->relay, NULL);
  g_assert_false (relay_fail_over (f->relay, f->b, 10 * SECOND));
  g_assert_true (relay_is_current (f->relay, f->a));
}

static void
a_warm_source_without_a_join_point_takes_over_at_its_first (Fixture *f, gconstpointer unused)
{
  send_both (f, 1000, FRAME, 3 * SECOND);
  g_assert_false (relay_fail_over (f->relay, f->b, 3 * SECOND));
  relay_prefer (f->relay, f->b);
  for (gint64 t = 3 * SECOND; t < 4 * SECOND; t += FRAME)
    send_at (f->b, 2, 1000, t, 0);
  g_assert_cmpuint (count (f, 0, 2), ==, 0);
  send_at (f->b, 2, 25, 4 * SECOND, 0);
  g_assert_cmpuint (count (f, 0, 2), ==, 1);
  check_numbers (f);
}

// The current source still flows, so nothing is lost by waiting for a fresh join point.
static void
a_warm_source_that_is_preferred_waits_for_a_fresh_join_point (Fixture *f, gconstpointer unused)
{
  send_both (f, 50, FRAME, 3 * SECOND);
  relay_prefer (f->relay, f->b);
  send_both (f, 50, 3 * SECOND, 4 * SECOND);
  g_assert_true (relay_is_current (f->relay, f->a));
  send_both (f, 50, 4 * SECOND, 5 * SECOND);
  g_assert_true (relay_is_current (f->relay, f->b));
  g_assert_cmpuint (count (f, 0, 2), ==, 25);
  check_numbers (f);
}

static void
the_packets_kept_are_bounded (Fixture *f, gconstpointer unused)
{
  // Keyframes more than 30 s apart: at 40 and 80 s.
  send_both (f, 1000, 40 * SECOND, 69 * SECOND);
  g_assert_false (relay_fail_over (f->relay, f->a, 69 * SECOND));
  send_both (f, 1000, 69 * SECOND, 71 * SECOND);
  g_assert_false (relay_fail_over (f->relay, f->b, 71 * SECOND));
  send_both (f, 1000, 71 * SECOND, 81 * SECOND);
  g_assert_true (relay_fail_over (f->relay, f->b, 81 * SECOND));
  // Many packets within a moment.
  relay_keep_warm (f->relay, f->a);
  send_at (f->a, 1, 1, 82 * SECOND, 0);
  for (guint i = 1; i < 20000; i++)
    relay_push (f->a, 0, packet_new (DELTA, (guint16) i, i, 16), 82 * SECOND, RELAY_NO_BASE);
  g_assert_false (relay_fail_over (f->relay, f->a, 82 * SECOND));
}

static void
a_second_death_while_catching_up_continues_the_numbers (Fixture *f, gconstpointer unused)
{
  gint64 now = 7 * SECOND;

  send_both (f, 100, FRAME, now);
  g_assert_true (relay_fail_over (f->relay, f->b, now));
  relay_keep_warm (f->relay, f->a);
  send_both (f, 100, now, now + 120 * MS);
  now += 120 * MS;
  g_assert_true (relay_fail_over (f->relay, f->a, now));
  for (gint64 t = now; t < now + SECOND; t += FRAME)
    send_at (f->a, 1, 25, t, 0);
  check_numbers (f);
}

// A source that was silent for a while, and did not begin again.
static void
a_source_that_resumes_gets_a_new_place (Fixture *f, gconstpointer unused)
{
  send_both (f, 25, FRAME, 3 * SECOND);
  g_assert_true (relay_fail_over (f->relay, f->b, 3 * SECOND));
  for (gint64 t = 3 * SECOND; t < 6 * SECOND; t += FRAME)
    send_at (f->b, 2, 25, t, 0);
  relay_prefer (f->relay, f->a);
  send_both (f, 25, 6 * SECOND, 8 * SECOND);
  g_assert_true (relay_is_current (f->relay, f->a));
  check_numbers (f);
  g_assert_cmpint (out_at (f, f->out->len - 1).time, <, 9 * SECOND);
}

// The sound takes 300 ms longer than the picture. After an hour only the sender reports tell.
static void
sender_reports_keep_sound_in_sync (Fixture *f, gconstpointer unused)
{
  gint64 hour = 3600 * SECOND, late = 300 * MS, picture = 0, sound = 0;

  send_at (f->b, 2, 25, FRAME, late);
  for (gint64 t = hour; t < hour + 3 * SECOND; t += FRAME) {
    send_at (f->a, 1, 25, t, 0);
    send_at (f->b, 2, 25, t, late);
  }
  for (guint track = 0; track < 2; track++) {
    guint32 rate = track ? AUDIO : VIDEO;
    WeirNtpMap map = { .known = TRUE, .ntp = 1000ull << 32, .ssrc = 32 + track };

    map.timestamp =
        (guint32) ((hour + 2 * SECOND) / 1000 * rate / 1000000) + (track ? 11110 : 15554);
    relay_set_ntp_map (f->b, track, &map);
  }
  g_assert_true (relay_fail_over (f->relay, f->b, hour + 3 * SECOND));
  for (gint64 t = hour + 3 * SECOND; t < hour + 5 * SECOND; t += FRAME)
    send_at (f->b, 2, 25, t, late);
  for (guint i = 0; i < f->out->len; i++) {
    if (out_at (f, i).track == 0)
      picture = out_at (f, i).time;
    else
      sound = out_at (f, i).time;
  }
  check_numbers (f);
  g_assert_cmpint (ABS (picture - sound - late), <, MS);
}

static void
ask (gpointer n, guint track, gint64 now)
{
  ++*(guint *) n;
}

static void
forget (gpointer n)
{
}

static void
readers_ask_the_current_source_for_keyframes (Fixture *f, gconstpointer unused)
{
  guint a = 0, b = 0;

  relay_source_set_key_handler (f->a, ask, &a, forget);
  relay_source_set_key_handler (f->b, ask, &b, forget);
  send_both (f, 25, FRAME, 3 * SECOND);
  relay_ask_key (f->relay, 0, 3 * SECOND);
  g_assert_cmpuint (a, ==, 1);
  g_assert_cmpuint (b, ==, 0);
  g_assert_true (relay_fail_over (f->relay, f->b, 5 * SECOND));
  relay_ask_key (f->relay, 0, 5 * SECOND);
  g_assert_cmpuint (a, ==, 1);
  g_assert_cmpuint (b, ==, 1);
}

static gpointer
send_from_a (gpointer data)
{
  Fixture *f = data;

  for (gint64 now = FRAME; !g_atomic_int_get (&f->over); now += FRAME) {
    send_at (f->a, 1, 25, now, 0);
    g_thread_yield ();
  }
  return NULL;
}

static gpointer
send_from_b (gpointer data)
{
  Fixture *f = data;

  for (gint64 now = FRAME; !g_atomic_int_get (&f->over); now += FRAME) {
    send_at (f->b, 2, 50, now, 0);
    g_thread_yield ();
  }
  return NULL;
}

// The sources send at their own speed, and take over from each other in any state.
static void
sources_take_over_while_both_send (Fixture *f, gconstpointer unused)
{
  GThread *a = g_thread_new ("a", send_from_a, f), *b = g_thread_new ("b", send_from_b, f);
  guint n_taken = 0;

  for (guint i = 0; n_taken < 200; i++) {
    RelaySource *next = relay_is_current (f->relay, f->a) ? f->b : f->a;

    relay_keep_warm (f->relay, next);
    // It may have become the current one, if it was preferred.
    while (!relay_is_warm (f->relay, next) && !relay_is_current (f->relay, next))
      g_thread_yield ();
    if (i % 5 == 4)
      relay_prefer (f->relay, next);
    else
      n_taken += relay_fail_over (f->relay, next, (gint64) (i + 1) * SECOND);
  }
  g_atomic_int_set (&f->over, 1);
  g_thread_join (a);
  g_thread_join (b);
  check_numbers (f);
}

#define ADD(name, function)                                                                        \
  g_test_add ("/relay-warm/" name, Fixture, NULL, set_up, function, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  gst_init (&argc, &argv);
  ADD ("a-dead-source-is-replaced-at-the-last-join-point",
      a_dead_source_is_replaced_at_the_last_join_point);
  ADD ("the-pictures-since-the-join-point-are-sent-fast",
      the_pictures_since_the_join_point_are_sent_fast);
  ADD ("a-warm-source-takes-over-only-when-told", a_warm_source_takes_over_only_when_told);
  ADD ("a-warm-source-without-a-join-point-takes-over-at-its-first",
      a_warm_source_without_a_join_point_takes_over_at_its_first);
  ADD ("a-warm-source-that-is-preferred-waits-for-a-fresh-join-point",
      a_warm_source_that_is_preferred_waits_for_a_fresh_join_point);
  ADD ("the-packets-kept-are-bounded", the_packets_kept_are_bounded);
  ADD ("a-second-death-while-catching-up-continues-the-numbers",
      a_second_death_while_catching_up_continues_the_numbers);
  ADD ("a-source-that-resumes-gets-a-new-place", a_source_that_resumes_gets_a_new_place);
  ADD ("sender-reports-keep-sound-in-sync", sender_reports_keep_sound_in_sync);
  ADD (
      "readers-ask-the-current-source-for-keyframes", readers_ask_the_current_source_for_keyframes);
  ADD ("sources-take-over-while-both-send", sources_take_over_while_both_send);
  return g_test_run ();
}
