// SPDX-License-Identifier: LGPL-2.1-or-later
#include "feed.h"
#include "relay.h"
#include "rtp.h"

#include <gst/app/gstappsink.h>
#include <string.h>

#define SECOND ((gint64) GST_SECOND)
#define FRAME 3000 // ticks between two packets
#define H264 "application/x-rtp, media=video, encoding-name=H264, clock-rate=90000, payload=96"

typedef struct {
  Relay *relay;
  GstElement *pipeline, *sink;
  Feed *feed;
  guint32 ssrc;
} Fixture;

static GstBuffer *
packet_new (guint16 seq, guint32 timestamp, guint32 ssrc)
{
  guint8 data[WEIR_RTP_HEADER + 8] = { 0x80, 0xe0 };

  for (guint i = 0; i < 8; i++)
    data[WEIR_RTP_HEADER + i] = (guint8) (seq * 13 + i);
  weir_rtp_set_seq (data, seq);
  weir_rtp_set_timestamp (data, timestamp);
  weir_rtp_set_ssrc (data, ssrc);
  return gst_buffer_new_memdup (data, sizeof data);
}

static RelayTracks
begin (Relay *relay, const gchar *text)
{
  GPtrArray *caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);
  RelayTracks tracks;

  g_ptr_array_add (caps, gst_caps_from_string (text));
  tracks = relay_begin (relay, caps);
  g_ptr_array_unref (caps);
  return tracks;
}

static GstSample *
pull (Fixture *f, GstClockTime wait)
{
  return gst_app_sink_try_pull_sample (GST_APP_SINK (f->sink), wait);
}

static void
set_up (Fixture *f, gconstpointer unused)
{
  GstCaps *caps;
  GstBuffer *probe = packet_new (0, 0, 0);
  GstSample *sample;

  f->relay = relay_new ();
  g_assert_cmpint (begin (f->relay, H264), ==, RELAY_TRACKS_FIRST);
  caps = relay_dup_caps (f->relay, 0);
  gst_structure_get_uint (gst_caps_get_structure (caps, 0), "ssrc", &f->ssrc);
  f->feed = feed_new (caps);
  gst_caps_unref (caps);
  f->pipeline = gst_pipeline_new (NULL);
  f->sink = gst_element_factory_make ("appsink", NULL);
  g_object_set (f->sink, "sync", FALSE, NULL);
  gst_bin_add_many (GST_BIN (f->pipeline), GST_ELEMENT (f->feed), f->sink, NULL);
  g_assert_true (gst_element_link (GST_ELEMENT (f->feed), f->sink));
  gst_element_set_state (f->pipeline, GST_STATE_PLAYING);
  // A feed drops what comes before its gap went through.
  do {
    feed_push (f->feed, probe);
    sample = pull (f, GST_MSECOND);
  } while (!sample);
  gst_sample_unref (sample);
  gst_buffer_unref (probe);
  g_assert_null (pull (f, 0));
  relay_attach (f->relay, 0, f->feed);
}

static void
tear_down (Fixture *f, gconstpointer unused)
{
  relay_detach (f->relay, 0, f->feed);
  gst_element_set_state (f->pipeline, GST_STATE_NULL);
  gst_object_unref (f->pipeline);
  relay_unref (f->relay);
}

static void
push (Fixture *f, guint16 seq, guint32 timestamp, guint32 ssrc, gint64 now)
{
  relay_push (f->relay, 0, packet_new (seq, timestamp, ssrc), now, RELAY_NO_BASE);
}

// The packet that was `in_seq` must come out with these numbers and its own payload.
static void
expect (Fixture *f, guint16 in_seq, guint16 seq, guint32 timestamp)
{
  GstSample *sample = pull (f, 5 * GST_SECOND);
  GstMapInfo map;
  WeirRtp rtp;

  g_assert_nonnull (sample);
  g_assert_true (gst_buffer_map (gst_sample_get_buffer (sample), &map, GST_MAP_READ));
  g_assert_cmpint (weir_rtp_parse (map.data, map.size, &rtp), ==, 0);
  g_assert_cmpuint (rtp.seq, ==, seq);
  g_assert_cmpuint (rtp.timestamp, ==, timestamp);
  g_assert_cmphex (rtp.ssrc, ==, f->ssrc);
  g_assert_cmpuint (rtp.pt, ==, 96);
  g_assert_true (rtp.marker);
  g_assert_cmpuint (rtp.payload_length, ==, 8);
  for (guint i = 0; i < 8; i++)
    g_assert_cmpuint (map.data[rtp.payload_offset + i], ==, (guint8) (in_seq * 13 + i));
  gst_buffer_unmap (gst_sample_get_buffer (sample), &map);
  gst_sample_unref (sample);
}

static void
two_lives (Fixture *f, gconstpointer unused)
{
  for (guint i = 0; i < 10; i++) {
    push (f, (guint16) (65530 + i), 1000 + i * FRAME, 0xaaaa, SECOND + i * SECOND / 30);
    expect (f, (guint16) (65530 + i), (guint16) (65530 + i), 1000 + i * FRAME);
  }
  g_assert_cmpint (begin (f->relay, H264), ==, RELAY_TRACKS_SAME);
  // Two seconds of silence after the last packet, which was at 27000 ticks.
  for (guint i = 0; i < 10; i++) {
    gint64 now = SECOND + 9 * SECOND / 30 + 2 * SECOND + i * SECOND / 30;

    push (f, (guint16) (7 + i), 99 + i * FRAME, 0xbbbb, now);
    expect (f, (guint16) (7 + i), (guint16) (65540 + i), 1000 + 27000 + 180000 + i * FRAME);
  }
}

static void
ssrc_changes_within_a_life (Fixture *f, gconstpointer unused)
{
  RelayStats stats;
  guint16 out = 100;

  push (f, 100, 0, 0xaaaa, SECOND);
  expect (f, 100, out, 0);
  push (f, 5000, 777, 0xbbbb, 2 * SECOND);
  expect (f, 5000, ++out, 90000);
  // The old one, interleaved, is dropped and does not make the numbers flap.
  for (guint i = 1; i <= 20; i++) {
    push (f, (guint16) (100 + i), i * FRAME, 0xaaaa, 2 * SECOND + i);
    push (f, (guint16) (5000 + i), 777 + i * FRAME, 0xbbbb, 2 * SECOND + i);
    expect (f, (guint16) (5000 + i), ++out, 90000 + i * FRAME);
  }
  // Nor does a stray one.
  push (f, 1, 1, 0xcccc, 2 * SECOND + 21);
  g_assert_null (pull (f, 0));
  // When it is alone again it is taken again, after the silence.
  push (f, 300, 0, 0xaaaa, 3 * SECOND + 20);
  expect (f, 300, ++out, 90000 + 20 * FRAME + 90000);
  relay_get_stats (f->relay, &stats);
  g_assert_cmpuint (stats.n_stale, ==, 21);
  g_assert_cmpuint (stats.n_packets, ==, 44);
}

static void
no_rtp_is_counted (Fixture *f, gconstpointer unused)
{
  RelayStats stats;

  relay_push (f->relay, 0, gst_buffer_new (), SECOND, RELAY_NO_BASE);
  relay_push (f->relay, 0, gst_buffer_new_memdup ("\x80\x60", 2), SECOND, RELAY_NO_BASE);
  relay_push (f->relay, 0, gst_buffer_new_memdup ("no RTP of any kind", 18), SECOND, RELAY_NO_BASE);
  relay_push (f->relay, 9, packet_new (1, 1, 1), SECOND, RELAY_NO_BASE);
  relay_get_stats (f->relay, &stats);
  g_assert_cmpuint (stats.n_bad, ==, 3);
  g_assert_null (pull (f, 0));
}

static void
rewrites_reports (Fixture *f, gconstpointer unused)
{
  WeirNtpMap map = { TRUE, G_GUINT64_CONSTANT (0xe000000000000000), 1000, 0xaaaa }, got;
  guint8 report[28] = { 0x80, 200, 0, 6 };

  // In the second life, so that the map has to follow the splice.
  push (f, 1, 0, 0x9999, SECOND);
  begin (f->relay, H264);
  push (f, 1, 1000, 0xaaaa, 2 * SECOND);
  g_assert_cmpuint (relay_rewrite_sr (f->relay, 0, report, sizeof report), ==, 8);

  memcpy (report, "\x80\xc8\0\6", 4);
  map.ssrc = 0xbbbb; // another's
  relay_set_ntp_map (f->relay, 0, &map);
  g_assert_cmpuint (relay_rewrite_sr (f->relay, 0, report, sizeof report), ==, 8);

  map.ssrc = 0xaaaa;
  relay_set_ntp_map (f->relay, 0, &map);
  memcpy (report, "\x80\xc8\0\6", 4);
  // One second after the map's instant, which went out as 90000.
  GST_WRITE_UINT32_BE (report + 16, 180000);
  g_assert_cmpuint (relay_rewrite_sr (f->relay, 0, report, sizeof report), ==, 28);
  g_assert_cmpint (weir_rtcp_find_sr (report, sizeof report, &got), ==, 0);
  g_assert_cmphex (got.ntp, ==, map.ntp + (G_GUINT64_CONSTANT (1) << 32));
}

static void
knows_its_tracks (void)
{
  static const struct {
    const gchar *first, *second;
    RelayTracks tracks;
  } cases[] = {
    { H264, H264, RELAY_TRACKS_SAME },
    { H264 ", sprop-parameter-sets=(string)AA", H264 ", sprop-parameter-sets=(string)BB",
        RELAY_TRACKS_SAME },
    { H264 ", ssrc=(uint)1, a-control=(string)a", H264 ", ssrc=(uint)2, a-control=(string)b",
        RELAY_TRACKS_SAME },
    { H264, "application/x-rtp, media=video, encoding-name=H265, clock-rate=90000, payload=96",
        RELAY_TRACKS_CHANGED },
    { H264, "application/x-rtp, media=video, encoding-name=H264, clock-rate=90000, payload=97",
        RELAY_TRACKS_CHANGED },
    { H264 ", packetization-mode=(string)0", H264 ", packetization-mode=(string)1",
        RELAY_TRACKS_CHANGED },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    Relay *relay = relay_new ();

    g_assert_cmpuint (relay_n_tracks (relay), ==, 0);
    g_assert_null (relay_dup_caps (relay, 0));
    g_assert_cmpint (begin (relay, cases[i].first), ==, RELAY_TRACKS_FIRST);
    g_assert_cmpint (begin (relay, cases[i].second), ==, cases[i].tracks);
    relay_unref (relay);
  }
}

static void
publishes_the_codec_only (void)
{
  Relay *relay = relay_new ();
  GPtrArray *upstream = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);
  GstCaps *caps = gst_caps_from_string (H264 ", a-tool=(string)x, a-control=(string)secret, "
                                             "ssrc-1-cname=(string)me, x-dimensions=(string)y, "
                                             "sprop-parameter-sets=(string)AA");
  GstStructure *s;

  gst_caps_set_simple (caps, "ssrc", G_TYPE_UINT, 5, "bad", G_TYPE_STRING, "1\r\na=evil", NULL);
  g_ptr_array_add (upstream, caps);
  relay_begin (relay, upstream);
  g_ptr_array_unref (upstream);

  caps = relay_dup_caps (relay, 0);
  s = gst_caps_get_structure (caps, 0);
  for (gint i = 0; i < gst_structure_n_fields (s); i++) {
    const gchar *name = gst_structure_nth_field_name (s, (guint) i);

    g_assert_false (g_str_has_prefix (name, "a-") || g_str_has_prefix (name, "x-")
                    || g_str_has_prefix (name, "ssrc-") || g_str_equal (name, "bad"));
  }
  g_assert_cmpstr (gst_structure_get_string (s, "sprop-parameter-sets"), ==, "AA");
  g_assert_true (gst_structure_has_field_typed (s, "ssrc", G_TYPE_UINT));
  gst_caps_unref (caps);
  relay_unref (relay);
}

#define ADD(name, function) g_test_add (name, Fixture, NULL, set_up, function, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  gst_init (&argc, &argv);
  ADD ("/relay/two-lives", two_lives);
  ADD ("/relay/ssrc-changes", ssrc_changes_within_a_life);
  ADD ("/relay/no-rtp", no_rtp_is_counted);
  ADD ("/relay/reports", rewrites_reports);
  g_test_add_func ("/relay/tracks", knows_its_tracks);
  g_test_add_func ("/relay/published", publishes_the_codec_only);
  return g_test_run ();
}
