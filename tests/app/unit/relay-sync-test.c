// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relay/relay_link.h"
#include "relay/synced_sink.h"
#include "rtp/rtp.h"

#define SECOND ((gint64) GST_SECOND)
#define MS ((gint64) GST_MSECOND)
#define VIDEO "application/x-rtp, media=video, encoding-name=H264, clock-rate=90000, payload=96"
#define AUDIO "application/x-rtp, media=audio, encoding-name=OPUS, clock-rate=48000, payload=97"
#define PICTURE (40 * MS)
#define TAKEN_NTP (UINT64_C (0xe0000000) << 32) // when the media with time 0 were taken
#define BEGIN (100 * SECOND)                    // arrival of the first packet

static const guint32 rates[] = { 90000, 48000 };
static const guint32 bases[] = { 0xfffffff0, 12345 };

typedef struct {
  Relay *relay;
  RelaySource *source;
  SyncedSink *synced;
  guint n[2], n_ended;
  gint64 first[2], last[2]; // times of packets
  gint64 moved[2];          // time of the last packet minus when it was taken
  guint16 seq[2];
} Fixture;

// The packets carry when they were taken.
static void
on_push (gpointer data, const RelayPacket *packet)
{
  Fixture *f = data;
  gint64 taken;

  gst_buffer_extract (packet->buffer, WEIR_RTP_HEADER, &taken, sizeof taken);
  if (f->n[packet->track]++ == 0)
    f->first[packet->track] = packet->time;
  else
    g_assert_cmpint (packet->time, >=, f->last[packet->track]);
  f->last[packet->track] = packet->time;
  f->moved[packet->track] = packet->time - taken;
  gst_buffer_unref (packet->buffer);
}

static void
on_ended (gpointer data)
{
  ((Fixture *) data)->n_ended++;
}

static const RelaySink sink = { .push = on_push, .ended = on_ended };

static void
begin (RelaySource *source)
{
  GPtrArray *caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);

  g_ptr_array_add (caps, gst_caps_from_string (VIDEO));
  g_ptr_array_add (caps, gst_caps_from_string (AUDIO));
  relay_source_begin (source, caps);
  g_ptr_array_unref (caps);
}

static void
set_up (Fixture *f, gconstpointer unused)
{
  *f = (Fixture) { .relay = relay_new () };
  f->source = relay_source_new (f->relay, NULL, NULL);
  begin (f->source);
  f->synced = synced_sink_add (f->relay, "test", &sink, f, 3);
}

static void
tear_down (Fixture *f, gconstpointer unused)
{
  synced_sink_remove (f->synced);
  g_assert_cmpuint (f->n_ended, ==, 1);
  relay_source_end (f->source);
  relay_source_unref (f->source);
  relay_unref (f->relay);
}

static guint32
ticks (guint track, gint64 taken)
{
  return bases[track] + (guint32) (taken / MS * rates[track] / 1000);
}

static void
push_with (Fixture *f, guint track, gint64 taken, gint64 now, guint64 base)
{
  guint8 data[WEIR_RTP_HEADER + sizeof taken] = { 0x80, 0xe0 };

  weir_rtp_set_seq (data, f->seq[track]++);
  weir_rtp_set_timestamp (data, ticks (track, taken));
  weir_rtp_set_ssrc (data, 1 + track);
  memcpy (data + WEIR_RTP_HEADER, &taken, sizeof taken);
  relay_push (f->source, track, gst_buffer_new_memdup (data, sizeof data), now, base);
}

// Sends what is taken from `from` until `until`; sound arrives `late` later than the picture.
static void
run (Fixture *f, gint64 from, gint64 until, gint64 late)
{
  for (gint64 at = from; at < until; at += PICTURE) {
    push_with (f, 0, at, BEGIN + at, RELAY_NO_BASE);
    if (at >= late)
      push_with (f, 1, at - late, BEGIN + at, RELAY_NO_BASE);
  }
}

// A sender report of media that were taken at `taken`, by a clock that is `fast`.
static void
report (Fixture *f, guint track, gint64 taken, gint64 fast)
{
  const WeirNtpMap map = { .known = TRUE,
    .ntp = TAKEN_NTP + (guint64) ((taken + fast) / MS * (G_GINT64_CONSTANT (1) << 32) / 1000),
    .timestamp = ticks (track, taken),
    .ssrc = 1 + track };

  relay_set_ntp_map (f->source, track, &map);
}

static gint64
difference (const Fixture *f)
{
  return f->moved[1] - f->moved[0];
}

#define assert_near(a, b) g_assert_cmpint (ABS ((a) - (b)), <=, 2 * MS)

// ---- the start ----

static void
packets_wait_for_the_reports_of_all_tracks (Fixture *f, gconstpointer unused)
{
  run (f, 0, SECOND, 280 * MS);
  report (f, 0, 960 * MS, 0);
  run (f, SECOND, SECOND + 3 * PICTURE, 280 * MS);
  g_assert_cmpuint (f->n[0] + f->n[1], ==, 0);
  report (f, 1, 400 * MS, 0);
  run (f, SECOND + 3 * PICTURE, SECOND + 4 * PICTURE, 280 * MS);
  g_assert_cmpuint (f->n[0], ==, 29);
  g_assert_cmpuint (f->n[1], ==, 22);
  assert_near (f->first[0], f->first[1]);
  assert_near (difference (f), 0);
}

static void
places_that_the_upstream_states_need_no_reports (Fixture *f, gconstpointer unused)
{
  push_with (f, 0, 0, BEGIN, bases[0]);
  g_assert_cmpuint (f->n[0], ==, 0);
  push_with (f, 1, 0, BEGIN + 300 * MS, bases[1]);
  push_with (f, 0, PICTURE, BEGIN + 300 * MS, bases[0]);
  g_assert_cmpuint (f->n[0], ==, 2);
  g_assert_cmpuint (f->n[1], ==, 1);
  assert_near (difference (f), 0);
}

static void
without_reports_the_wait_ends (Fixture *f, gconstpointer unused)
{
  run (f, 0, 2 * SECOND, 280 * MS);
  g_assert_cmpuint (f->n[0] + f->n[1], ==, 0);
  run (f, 2 * SECOND, 2 * SECOND + PICTURE, 280 * MS);
  g_assert_cmpuint (f->n[0], ==, 51);
  assert_near (difference (f), 280 * MS);
}

static void
a_silent_track_does_not_stop_the_other (Fixture *f, gconstpointer unused)
{
  run (f, 0, 2 * SECOND + PICTURE, 10 * SECOND);
  g_assert_cmpuint (f->n[0], ==, 51);
}

static void
one_track_does_not_wait (Fixture *f, gconstpointer unused)
{
  GPtrArray *caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);

  g_ptr_array_add (caps, gst_caps_from_string (VIDEO));
  relay_source_begin (f->source, caps);
  g_ptr_array_unref (caps);
  g_assert_cmpuint (f->n_ended, ==, 1); // the tracks have changed
  synced_sink_remove (f->synced);
  f->n_ended = 0;
  f->synced = synced_sink_add (f->relay, "test", &sink, f, 1);
  push_with (f, 0, 0, BEGIN, RELAY_NO_BASE);
  g_assert_cmpuint (f->n[0], ==, 1);
}

// ---- reports that come later ----

static void
a_later_report_moves_sound_once_and_never_back_in_time (Fixture *f, gconstpointer unused)
{
  guint n;

  run (f, 0, 3 * SECOND, 280 * MS);
  report (f, 0, 2 * SECOND, 0);
  report (f, 1, 2 * SECOND, 0);
  n = f->n[1];
  run (f, 3 * SECOND, 3 * SECOND + 280 * MS, 280 * MS);
  g_assert_cmpuint (f->n[1], ==, n); // the overlap
  g_assert_cmpuint (f->n[0], ==, 82);
  run (f, 3 * SECOND + 280 * MS, 4 * SECOND, 280 * MS);
  g_assert_cmpuint (f->n[1], ==, n + 18);
  assert_near (difference (f), 0);
}

static void
a_small_difference_is_made_up_for_slowly (Fixture *f, gconstpointer unused)
{
  gint64 before;

  run (f, 0, SECOND, 0);
  report (f, 0, 0, 0);
  report (f, 1, 0, 0);
  run (f, SECOND, 2 * SECOND, 0);
  assert_near (difference (f), 0);
  report (f, 1, SECOND, 30 * MS);
  before = f->last[1];
  run (f, 2 * SECOND, 2 * SECOND + PICTURE, 0);
  g_assert_cmpint (ABS (f->last[1] - before - PICTURE), <=, PICTURE / 1000 + 20);
  run (f, 2 * SECOND + PICTURE, 12 * SECOND, 0);
  assert_near (difference (f), 10 * MS);
  run (f, 12 * SECOND, 40 * SECOND, 0);
  assert_near (difference (f), 30 * MS);
  g_assert_cmpuint (f->n[1], ==, 1000);
}

static void
reports_that_cannot_be_are_not_believed (Fixture *f, gconstpointer unused)
{
  run (f, 0, SECOND, 0);
  report (f, 0, 0, 0);
  report (f, 1, 0, 3600 * SECOND);
  run (f, SECOND, 2 * SECOND, 0);
  g_assert_cmpuint (f->n[1], ==, 50);
  assert_near (difference (f), 0);
}

static void
a_report_of_another_sender_does_not_count (Fixture *f, gconstpointer unused)
{
  const WeirNtpMap map = { .known = TRUE, .ntp = TAKEN_NTP, .ssrc = 99 };

  relay_set_ntp_map (f->source, 1, &map); // before the first packet any is taken
  run (f, 0, SECOND, 0);
  report (f, 0, 0, 0);
  run (f, SECOND, SECOND + PICTURE, 0);
  g_assert_cmpuint (f->n[0], ==, 0);
}

// ---- runs and relays ----

static void
a_new_run_waits_again (Fixture *f, gconstpointer unused)
{
  run (f, 0, SECOND, 200 * MS);
  report (f, 0, 0, 0);
  report (f, 1, 0, 0);
  run (f, SECOND, 2 * SECOND, 200 * MS);
  g_assert_cmpuint (f->n[0], ==, 50);
  begin (f->source);
  run (f, 5 * SECOND, 6 * SECOND, 0);
  g_assert_cmpuint (f->n[0], ==, 50);
  report (f, 0, 5 * SECOND, 0);
  report (f, 1, 5 * SECOND, 0);
  run (f, 6 * SECOND, 6 * SECOND + PICTURE, 0);
  g_assert_cmpuint (f->n[0], ==, 76);
  assert_near (difference (f), 0);
}

// Sends the first packets, then reports. Returns whether a relay behind the relay knew before.
static gboolean
is_known_behind (Fixture *f, guint64 base)
{
  Relay *behind = relay_new ();
  RelaySource *link = relay_source_new (behind, NULL, NULL);
  gboolean known;
  RelaySync sync;

  relay_link (f->relay, link);
  push_with (f, 0, 0, BEGIN, base);
  push_with (f, 1, 0, BEGIN + 300 * MS, bases[1]);
  relay_get_sync (behind, &sync);
  known = sync.known;
  g_assert_false (sync.has_clock);
  report (f, 0, 0, 0);
  report (f, 1, 0, 0);
  relay_get_sync (behind, &sync);
  g_assert_true (sync.known);
  g_assert_true (sync.has_clock);
  relay_unlink (f->relay, link);
  relay_source_end (link);
  relay_source_unref (link);
  relay_unref (behind);
  return known;
}

static void
a_relay_behind_another_knows_what_is_guessed (Fixture *f, gconstpointer unused)
{
  g_assert_false (is_known_behind (f, RELAY_NO_BASE));
}

static void
a_relay_behind_another_knows_what_is_stated (Fixture *f, gconstpointer unused)
{
  g_assert_true (is_known_behind (f, bases[0]));
}

int
main (int argc, char **argv)
{
#define add(test) g_test_add ("/relay-sync/" #test, Fixture, NULL, set_up, test, tear_down)
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  add (packets_wait_for_the_reports_of_all_tracks);
  add (places_that_the_upstream_states_need_no_reports);
  add (without_reports_the_wait_ends);
  add (a_silent_track_does_not_stop_the_other);
  add (one_track_does_not_wait);
  add (a_later_report_moves_sound_once_and_never_back_in_time);
  add (a_small_difference_is_made_up_for_slowly);
  add (reports_that_cannot_be_are_not_believed);
  add (a_report_of_another_sender_does_not_count);
  add (a_new_run_waits_again);
  add (a_relay_behind_another_knows_what_is_guessed);
  add (a_relay_behind_another_knows_what_is_stated);
  return g_test_run ();
}
