// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relay/feed.h"
#include "relay/relay_sets.h"
#include "relay/relay.h"
#include "relay/relay_caps.h"
#include "relay/relay_link.h"
#include "rtp/rtp.h"

#include <gst/app/gstappsink.h>
#include <string.h>

#define SECOND ((gint64) GST_SECOND)
#define FRAME 3000 // ticks between two packets
#define H264 "application/x-rtp, media=video, encoding-name=H264, clock-rate=90000, payload=96"

typedef struct {
  Relay *relay;
  RelaySource *source;
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
begin (RelaySource *source, const gchar *text)
{
  GPtrArray *caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);
  RelayTracks tracks;

  g_ptr_array_add (caps, gst_caps_from_string (text));
  tracks = relay_source_begin (source, caps);
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

  f->relay = relay_new ();
  f->source = relay_source_new (f->relay, NULL, NULL);
  g_assert_cmpint (begin (f->source, H264), ==, RELAY_TRACKS_FIRST);
  caps = relay_dup_caps (f->relay, 0);
  gst_structure_get_uint (gst_caps_get_structure (caps, 0), "ssrc", &f->ssrc);
  f->feed = feed_new (caps, FALSE);
  gst_caps_unref (caps);
  f->pipeline = gst_pipeline_new (NULL);
  f->sink = gst_element_factory_make ("appsink", NULL);
  g_object_set (f->sink, "sync", FALSE, NULL);
  gst_bin_add_many (GST_BIN (f->pipeline), GST_ELEMENT (f->feed), f->sink, NULL);
  g_assert_true (gst_element_link (GST_ELEMENT (f->feed), f->sink));
  gst_element_set_state (f->pipeline, GST_STATE_PLAYING);
  // A feed drops packets until its gap has gone through.
  while (!feed_is_open (f->feed))
    g_thread_yield ();
  feed_attach (f->feed, f->relay, 0);
}

static void
tear_down (Fixture *f, gconstpointer unused)
{
  feed_detach (f->feed, f->relay);
  gst_element_set_state (f->pipeline, GST_STATE_NULL);
  gst_object_unref (f->pipeline);
  relay_source_unref (f->source);
  relay_unref (f->relay);
}

static void
push (Fixture *f, guint16 seq, guint32 timestamp, guint32 ssrc, gint64 now)
{
  relay_push (f->source, 0, packet_new (seq, timestamp, ssrc), now, RELAY_NO_BASE);
}

// Expects the packet that had the sequence number `in_seq`, with these outgoing numbers and its
// payload.
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
a_second_run_continues_the_numbers (Fixture *f, gconstpointer unused)
{
  for (guint i = 0; i < 10; i++) {
    push (f, (guint16) (65530 + i), 1000 + i * FRAME, 0xaaaa, SECOND + i * SECOND / 30);
    expect (f, (guint16) (65530 + i), (guint16) (65530 + i), 1000 + i * FRAME);
  }
  g_assert_cmpint (begin (f->source, H264), ==, RELAY_TRACKS_SAME);
  // Two seconds of silence after the last packet, which was at 27000 ticks.
  for (guint i = 0; i < 10; i++) {
    gint64 now = SECOND + 9 * SECOND / 30 + 2 * SECOND + i * SECOND / 30;

    push (f, (guint16) (7 + i), 99 + i * FRAME, 0xbbbb, now);
    expect (f, (guint16) (7 + i), (guint16) (65540 + i), 1000 + 27000 + 180000 + i * FRAME);
  }
}

static void
a_new_ssrc_takes_over_after_silence (Fixture *f, gconstpointer unused)
{
  RelayStats stats;
  guint16 out = 100;

  push (f, 100, 0, 0xaaaa, SECOND);
  expect (f, 100, out, 0);
  push (f, 5000, 777, 0xbbbb, 2 * SECOND);
  expect (f, 5000, ++out, 90000);
  // Packets of the old SSRC in between are dropped.
  for (guint i = 1; i <= 20; i++) {
    push (f, (guint16) (100 + i), i * FRAME, 0xaaaa, 2 * SECOND + i);
    push (f, (guint16) (5000 + i), 777 + i * FRAME, 0xbbbb, 2 * SECOND + i);
    expect (f, (guint16) (5000 + i), ++out, 90000 + i * FRAME);
  }
  // So is a stray packet.
  push (f, 1, 1, 0xcccc, 2 * SECOND + 21);
  g_assert_null (pull (f, 0));
  // The old SSRC takes over again after the new one has been silent.
  push (f, 300, 0, 0xaaaa, 3 * SECOND + 20);
  expect (f, 300, ++out, 90000 + 20 * FRAME + 90000);
  relay_get_stats (f->relay, &stats);
  g_assert_cmpuint (stats.n_stale, ==, 21);
  g_assert_cmpuint (stats.n_packets, ==, 44);
}

static void
malformed_packets_are_counted (Fixture *f, gconstpointer unused)
{
  RelayStats stats;

  relay_push (f->source, 0, gst_buffer_new (), SECOND, RELAY_NO_BASE);
  relay_push (f->source, 0, gst_buffer_new_memdup ("\x80\x60", 2), SECOND, RELAY_NO_BASE);
  relay_push (
      f->source, 0, gst_buffer_new_memdup ("no RTP of any kind", 18), SECOND, RELAY_NO_BASE);
  relay_push (f->source, 9, packet_new (1, 1, 1), SECOND, RELAY_NO_BASE);
  relay_get_stats (f->relay, &stats);
  g_assert_cmpuint (stats.n_bad, ==, 3);
  g_assert_null (pull (f, 0));
}

static void
sender_reports_follow_the_source (Fixture *f, gconstpointer unused)
{
  WeirNtpMap map = { TRUE, G_GUINT64_CONSTANT (0xe000000000000000), 1000, 0xaaaa };
  guint64 ntp;

  // In the second run, so that the map must follow the splice.
  push (f, 1, 0, 0x9999, SECOND);
  begin (f->source, H264);
  push (f, 1, 1000, 0xaaaa, 2 * SECOND);
  g_assert_false (relay_get_ntp_at (f->relay, 0, 180000, &ntp));

  map.ssrc = 0xbbbb; // of another sender
  relay_set_ntp_map (f->source, 0, &map);
  g_assert_false (relay_get_ntp_at (f->relay, 0, 180000, &ntp));

  map.ssrc = 0xaaaa;
  relay_set_ntp_map (f->source, 0, &map);
  // One second after the map's instant, whose outgoing timestamp is 90000.
  g_assert_true (relay_get_ntp_at (f->relay, 0, 180000, &ntp));
  g_assert_cmphex (ntp, ==, map.ntp + (G_GUINT64_CONSTANT (1) << 32));
  g_assert_false (relay_get_ntp_at (f->relay, 9, 180000, &ntp));
}

static void
a_source_learns_whether_its_tracks_changed (void)
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
        RELAY_TRACKS_SAME },
    { H264 ", profile-level-id=(string)4D401F",
        H264 ", profile-level-id=(string)42c01e, profile=(string)constrained-baseline, "
             "level-asymmetry-allowed=(string)1",
        RELAY_TRACKS_SAME },
    { H264 ", packetization-mode=(string)0", H264 ", packetization-mode=(string)1",
        RELAY_TRACKS_CHANGED },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    Relay *relay = relay_new ();
    RelaySource *source = relay_source_new (relay, NULL, NULL);

    g_assert_cmpuint (relay_n_tracks (relay), ==, 0);
    g_assert_null (relay_dup_caps (relay, 0));
    g_assert_cmpint (begin (source, cases[i].first), ==, RELAY_TRACKS_FIRST);
    g_assert_cmpint (begin (source, cases[i].second), ==, cases[i].tracks);
    relay_source_unref (source);
    relay_unref (relay);
  }
}

static void
only_the_codec_is_published (void)
{
  Relay *relay = relay_new ();
  RelaySource *source = relay_source_new (relay, NULL, NULL);
  GPtrArray *upstream = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);
  GstCaps *caps = gst_caps_from_string (H264 ", a-tool=(string)x, a-control=(string)secret, "
                                             "ssrc-1-cname=(string)me, x-dimensions=(string)y, "
                                             "a-framesize=(string)\"96 1-2\\r\\na=x\", "
                                             "sprop-parameter-sets=(string)AA");
  GstStructure *s;

  gst_caps_set_simple (caps, "ssrc", G_TYPE_UINT, 5, "bad", G_TYPE_STRING, "1\r\na=evil", NULL);
  g_ptr_array_add (upstream, caps);
  relay_source_begin (source, upstream);
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
  relay_source_unref (source);
  relay_unref (relay);
}

// Gives a payload in hexadecimal to the sets.
static void
take_sets (RelaySets *sets, const gchar *hex, GstCaps **caps)
{
  guint8 bytes[64];
  gsize n = strlen (hex) / 2;

  for (gsize i = 0; i < n; i++)
    bytes[i] =
        (guint8) (g_ascii_xdigit_value (hex[2 * i]) * 16 + g_ascii_xdigit_value (hex[2 * i + 1]));
  relay_sets_take (sets, bytes, n, caps);
}

static void
parameter_sets_in_band_are_published (void)
{
  static const struct {
    const gchar *caps, *payloads[6], *field, *value;
  } cases[] = {
    { H264, { "6742c01e", "68ce", "6588", NULL }, "sprop-parameter-sets", "Z0LAHg==,aM4=" },
    { H264, { "6742c01e", "68ce", "6588", NULL }, "profile-level-id", "42c01e" },
    { H264, { "1800046742c01e000268ce", "06ff", "7c85", NULL }, "sprop-parameter-sets",
        "Z0LAHg==,aM4=" },
    { H264, { "1800046742c01e000268ce0002658800", NULL }, "sprop-parameter-sets", "Z0LAHg==,aM4=" },
    { H264, { "6742c01e", "68ce", "68cf", "09f0", "6588", NULL }, "sprop-parameter-sets",
        "Z0LAHg==,aM4=,aM8=" },
    { H264, { "6742c01e", "6764001f", "68ce", "68cf", "6588", NULL }, "sprop-parameter-sets",
        "Z0LAHg==,Z2QAHw==,aM4=,aM8=" },
    { H264, { "6764001f", "68cf", "6742c01e", "68ce", "6588", NULL }, "sprop-parameter-sets",
        "Z0LAHg==,aM4=" },
    { H264, { "68ce", "6588", "6742c01e", "6588", NULL }, "sprop-parameter-sets", NULL },
    { H264, { "1800ff67", "18", "180004", "6588", NULL }, "sprop-parameter-sets", NULL },
    { "application/x-rtp, media=video, encoding-name=H265, clock-rate=90000, payload=96",
        { "40010c", "420101", "4401c1", "2601af", NULL }, "sprop-sps", "QgEB" },
    { "application/x-rtp, media=video, encoding-name=H265, clock-rate=90000, payload=96",
        { "6001000340010c000342010100034401c1", "2601af", NULL }, "sprop-pps", "RAHB" },
  };
  guint8 noise[64];

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GstCaps *caps = gst_caps_from_string (cases[i].caps);
    RelaySets *sets = relay_sets_new (caps);

    for (guint n = 0; cases[i].payloads[n]; n++)
      take_sets (sets, cases[i].payloads[n], &caps);
    g_assert_cmpstr (gst_structure_get_string (gst_caps_get_structure (caps, 0), cases[i].field),
        ==, cases[i].value);
    for (guint n = 0; n < 20000; n++) {
      for (guint k = 0; k < sizeof noise; k++)
        noise[k] = (guint8) (g_test_rand_int () >> 8);
      if (n % 2)
        noise[0] = (guint8) (n % 4 == 1 ? 0x18 : 0x60);
      relay_sets_take (sets, noise, (gsize) g_test_rand_int_range (0, sizeof noise + 1), &caps);
    }
    relay_sets_free (sets);
    gst_caps_unref (caps);
  }
}

static void
missing_packets_are_counted (Fixture *f, gconstpointer unused)
{
  static const guint16 seqs[] = { 65534, 65535, 3, 1, 4 }; // 0 and 2 never come, 1 comes late
  RelayStats stats;

  for (guint i = 0; i < G_N_ELEMENTS (seqs); i++)
    push (f, seqs[i], 1000 + i, 0xaaaa, SECOND + i);
  relay_get_stats (f->relay, &stats);
  g_assert_cmpuint (stats.n_lost, ==, 3);
  // A late packet that was counted as lost offsets the next lost one.
  push (f, 6, 1000, 0xaaaa, SECOND + 10);
  relay_get_stats (f->relay, &stats);
  g_assert_cmpuint (stats.n_lost, ==, 3);
  push (f, 8, 1000, 0xaaaa, SECOND + 11);
  // No loss is counted between two runs.
  begin (f->source, H264);
  push (f, 30000, 5, 0xbbbb, 2 * SECOND);
  relay_get_stats (f->relay, &stats);
  g_assert_cmpuint (stats.n_lost, ==, 4);
}

// ---- changes of source ----

#define KEY 5 // NAL unit type of an IDR slice
#define DELTA 1

static GstBuffer *
slice_new (guint8 type, gboolean marker, guint16 seq, guint32 timestamp, guint32 ssrc)
{
  guint8 data[WEIR_RTP_HEADER + 4] = { 0x80, marker ? 0xe0 : 0x60 };

  data[WEIR_RTP_HEADER] = (guint8) (0x60 | type);
  data[WEIR_RTP_HEADER + 1] = 0x88; // first_mb_in_slice 0
  data[WEIR_RTP_HEADER + 2] = (guint8) ssrc;
  weir_rtp_set_seq (data, seq);
  weir_rtp_set_timestamp (data, timestamp);
  weir_rtp_set_ssrc (data, ssrc);
  return gst_buffer_new_memdup (data, sizeof data);
}

// The source and the numbers of an outgoing packet.
typedef struct {
  guint8 of;
  guint16 seq;
  guint32 timestamp;
} Out;

static gboolean
next_out (Fixture *f, Out *out)
{
  GstSample *sample = pull (f, 0);
  guint8 data[WEIR_RTP_HEADER + 3];
  WeirRtp rtp;

  if (!sample)
    return FALSE;
  gst_buffer_extract (gst_sample_get_buffer (sample), 0, data, sizeof data);
  g_assert_cmpint (weir_rtp_parse (data, sizeof data, &rtp), ==, 0);
  g_assert_cmpuint (rtp.ssrc, ==, f->ssrc);
  *out = (Out) { data[WEIR_RTP_HEADER + 2], rtp.seq, rtp.timestamp };
  gst_sample_unref (sample);
  return TRUE;
}

static void
expect_of (Fixture *f, guint8 of, guint16 seq, guint32 timestamp)
{
  Out out = { 0 };

  g_assert_true (next_out (f, &out));
  g_assert_cmpuint (out.of, ==, of);
  g_assert_cmpuint (out.seq, ==, seq);
  g_assert_cmpuint (out.timestamp, ==, timestamp);
}

static void
expect_nothing (Fixture *f)
{
  Out out;

  g_assert_false (next_out (f, &out));
}

static void
slice (RelaySource *source, guint8 type, gboolean marker, guint16 seq, guint32 timestamp,
    guint32 ssrc, gint64 now)
{
  relay_push (source, 0, slice_new (type, marker, seq, timestamp, ssrc), now, RELAY_NO_BASE);
}

static void
a_standby_source_takes_over_at_its_join_point (Fixture *f, gconstpointer unused)
{
  RelaySource *other = relay_source_new (f->relay, NULL, NULL);
  RelayStats stats;

  slice (f->source, KEY, TRUE, 100, 1000, 1, SECOND);
  expect_of (f, 1, 100, 1000);
  relay_prefer (f->relay, other);
  g_assert_cmpint (begin (other, H264), ==, RELAY_TRACKS_SAME);

  // Without a join point the source does not change.
  slice (other, DELTA, TRUE, 7000, 500, 2, SECOND + 1);
  slice (f->source, DELTA, FALSE, 101, 4000, 1, SECOND + 2);
  expect_of (f, 1, 101, 4000);
  // At a join point, the current frame is finished first.
  slice (other, KEY, FALSE, 7001, 3500, 2, SECOND + 3);
  slice (other, KEY, TRUE, 7002, 3500, 2, SECOND + 4);
  expect_nothing (f);
  slice (f->source, DELTA, TRUE, 102, 4000, 1, SECOND + 5);
  expect_of (f, 1, 102, 4000);
  expect_nothing (f);
  slice (f->source, DELTA, TRUE, 103, 7000, 1, SECOND + 6);
  expect_of (f, 2, 103, 5800); // 20 ms later
  expect_of (f, 2, 104, 5800);
  slice (other, DELTA, TRUE, 7003, 6500, 2, SECOND + 7);
  expect_of (f, 2, 105, 8800);
  slice (f->source, DELTA, TRUE, 104, 10000, 1, SECOND + 8);
  expect_nothing (f);
  relay_get_stats (f->relay, &stats);
  g_assert_cmpuint (stats.n_switches, ==, 1);
  g_assert_cmpuint (stats.n_idle, ==, 2);
  g_assert_true (relay_is_current (f->relay, other));
  relay_source_end (other);
  relay_source_unref (other);
}

static void
a_standby_source_does_not_wait_for_a_silent_one (Fixture *f, gconstpointer unused)
{
  RelaySource *other = relay_source_new (f->relay, NULL, NULL);

  slice (f->source, KEY, FALSE, 100, 1000, 1, SECOND); // the last packet
  expect_of (f, 1, 100, 1000);
  begin (other, H264);
  relay_prefer (f->relay, other);
  slice (other, KEY, TRUE, 1, 0, 2, SECOND + SECOND / 20);
  expect_nothing (f);
  slice (other, DELTA, TRUE, 2, 3000, 2, SECOND + SECOND / 5);
  expect_of (f, 2, 101, 19000); // 0.2 s after the last packet
  expect_of (f, 2, 102, 22000);
  relay_source_end (other);
  relay_source_unref (other);
}

static void
a_source_with_other_tracks_does_not_take_over (Fixture *f, gconstpointer unused)
{
  RelaySource *other = relay_source_new (f->relay, NULL, NULL);

  slice (f->source, KEY, TRUE, 100, 1000, 1, SECOND);
  expect_of (f, 1, 100, 1000);
  relay_prefer (f->relay, other);
  g_assert_cmpint (
      begin (other, "application/x-rtp, media=video, encoding-name=VP8, clock-rate=90000"), ==,
      RELAY_TRACKS_CHANGED);
  slice (other, KEY, TRUE, 1, 0, 2, SECOND + 1);
  slice (f->source, DELTA, TRUE, 101, 4000, 1, SECOND + 2);
  expect_of (f, 1, 101, 4000);
  g_assert_cmpint (relay_take (f->relay, other), ==, RELAY_TRACKS_CHANGED);
  relay_source_end (other);
  relay_source_unref (other);
}

// Two sources with media of the same relay: media times do not change with the source, and each
// instant is sent once.
static void
a_source_of_the_same_origin_continues_at_the_same_instant (Fixture *f, gconstpointer unused)
{
  Relay *root = relay_new ();
  RelaySource *upstream = relay_source_new (root, NULL, NULL);
  RelaySource *late = relay_source_new (f->relay, NULL, NULL);
  GPtrArray *caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);

  relay_source_end (f->source);
  relay_link (root, f->source);
  begin (upstream, H264);
  relay_prefer (f->relay, f->source);
  for (guint i = 0; i < 10; i++) {
    slice (upstream, i % 5 ? DELTA : KEY, TRUE, (guint16) i, i * FRAME, 1, SECOND + i);
    expect_of (f, 1, (guint16) i, i * FRAME);
  }

  // The second source begins at 0.2 s, two frames ahead of the first.
  relay_prefer (f->relay, late);
  g_ptr_array_add (caps, gst_caps_from_string (H264));
  relay_source_begin_from (late, caps, root, SECOND / 5);
  g_ptr_array_unref (caps);
  for (guint i = 0; i < 3; i++)
    relay_push (late, 0, slice_new (i ? DELTA : KEY, TRUE, (guint16) (500 + i), 700 + i * FRAME, 2),
        SECOND + 10 + i, 700 - 6 * FRAME); // the first frame is at 12 * FRAME
  expect_nothing (f);
  for (guint i = 10; i < 12; i++) {
    slice (upstream, DELTA, TRUE, (guint16) i, i * FRAME, 1, SECOND + i + 10);
    expect_of (f, 1, (guint16) i, i * FRAME);
  }
  slice (upstream, DELTA, TRUE, 12, 12 * FRAME, 1, SECOND + 30);
  for (guint i = 12; i < 15; i++)
    expect_of (f, 2, (guint16) i, i * FRAME);
  expect_nothing (f);

  relay_source_end (late);
  relay_source_unref (late);
  relay_unlink (root, f->source);
  relay_source_unref (upstream);
  relay_unref (root);
}

// Makes a relay at the address of a freed one, if possible.
static Relay *
relay_new_at (gconstpointer address)
{
  GPtrArray *others = g_ptr_array_new_with_free_func ((GDestroyNotify) relay_unref);
  Relay *relay = relay_new ();

  while (relay != address && others->len < 100) {
    g_ptr_array_add (others, relay);
    relay = relay_new ();
  }
  g_ptr_array_unref (others);
  return relay;
}

// A freed relay and a new one at its address have separate times.
static void
a_new_relay_at_an_old_address_is_another_origin (Fixture *f, gconstpointer unused)
{
  gconstpointer gone = NULL;
  GPtrArray *caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);

  g_ptr_array_add (caps, gst_caps_from_string (H264));
  for (guint16 life = 0; life < 2; life++) {
    Relay *from = life ? relay_new_at (gone) : relay_new ();

    gone = from;
    relay_source_begin_from (f->source, caps, from, 0);
    relay_unref (from);
    for (guint16 i = 0; i < 5; i++) {
      guint16 seq = 5 * life + i;
      GstSample *sample;

      push (f, seq, i * FRAME, 1 + life, (1 + 10 * life) * SECOND + i * SECOND / 30);
      sample = pull (f, 5 * GST_SECOND);
      g_assert_nonnull (sample);
      gst_sample_unref (sample);
    }
  }
  g_ptr_array_unref (caps);
}

// Fields that are private to an upstream are not compared.
static void
private_fields_do_not_make_tracks_differ (void)
{
#define AAC "application/x-rtp, media=audio, encoding-name=MPEG4-GENERIC, clock-rate=48000"
  static const struct {
    const gchar *told, *now;
    gboolean same;
  } cases[] = {
    { H264, H264, TRUE },
    { H264, H264 ", ssrc=(uint)5, seqnum-offset=(uint)7, timestamp-offset=(uint)9", TRUE },
    { H264, H264 ", a-control=(string)x, x-dimensions=(string)y", TRUE },
    { H264, H264 ", sprop-parameter-sets=(string)x, level=(string)3", TRUE },
    { H264, H264 ", packetization-mode=(string)1", FALSE },
    { AAC, AAC ", payload=97", TRUE },
    { AAC ", profile-level-id=(string)1", AAC ", profile-level-id=(string)2", TRUE },
    { AAC ", config=(string)1190", AAC ", config=(string)1210", FALSE },
    { AAC ", a-lang=(string)de", AAC, TRUE },
    // A file says that there is no SBR, a transport stream and a camera do not.
    { AAC ", config=(string)118856e500", AAC ", config=(string)1188, streamtype=(string)5", TRUE },
    { AAC ", config=(string)118856E500, mode=(string)AAC-hbr",
        AAC ", config=(string)1188, mode=(string)aac-hbr, encoding-params=(string)1", TRUE },
    { AAC ", config=(string)118856e580", AAC ", config=(string)1188", FALSE }, // with SBR
    { AAC ", sizelength=(string)13", AAC ", sizelength=(string)6", FALSE },
    { H264, AAC, FALSE },
  };
#undef AAC

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GstCaps *told = gst_caps_from_string (cases[i].told);
    GstCaps *now = gst_caps_from_string (cases[i].now);

    if (relay_caps_same (told, now) != cases[i].same
        || relay_caps_same (now, told) != cases[i].same)
      g_error ("%s and %s: expected %d", cases[i].told, cases[i].now, cases[i].same);
    gst_caps_unref (told);
    gst_caps_unref (now);
  }
}

// A language goes into SDPs and playlists, so it has no other characters than those of its form.
static void
a_language_is_told_if_it_has_the_form (void)
{
  static const struct {
    const gchar *text;
    gboolean told;
  } cases[] = { { "de", TRUE }, { "deu", TRUE }, { "zh-Hant-TW", TRUE }, { "x", FALSE },
    { "", FALSE }, { "und", FALSE }, { "UND", FALSE }, { "-de", FALSE }, { "de-", FALSE },
    { "de,en", FALSE }, { "de\"", FALSE }, { "de\r\nm=audio", FALSE }, { "d\xc3\xa9", FALSE },
    { "abcdefgh-abcdefgh-abcdefgh-abcdefgh", TRUE },
    { "abcdefgh-abcdefgh-abcdefgh-abcdefghi", FALSE } };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GstCaps *caps = gst_caps_new_simple (
        "application/x-rtp", RELAY_CAPS_LANGUAGE, G_TYPE_STRING, cases[i].text, NULL);
    GstCaps *published = relay_caps_publish (caps, 1);
    const gchar *wanted = cases[i].told ? cases[i].text : NULL;

    g_assert_cmpstr (relay_caps_get_language (caps), ==, wanted);
    g_assert_cmpstr (relay_caps_get_language (published), ==, wanted);
    g_assert_cmpint (
        gst_structure_has_field (gst_caps_get_structure (published, 0), RELAY_CAPS_LANGUAGE), ==,
        cases[i].told);
    gst_caps_unref (published);
    gst_caps_unref (caps);
  }
}

#define ADD(name, function) g_test_add (name, Fixture, NULL, set_up, function, tear_down)

static void
note_freed (gpointer freed)
{
  *(gboolean *) freed = TRUE;
}

static GstBuffer *
watched_new (guint16 seq, guint32 ssrc, gboolean *freed)
{
  GstBuffer *packet = packet_new (seq, seq * FRAME, ssrc);

  *freed = FALSE;
  gst_mini_object_set_qdata (GST_MINI_OBJECT (gst_buffer_peek_memory (packet, 0)),
      g_quark_from_static_string ("freed"), freed, note_freed);
  return packet;
}

static GstPadProbeReturn
drop (GstPad *pad, GstPadProbeInfo *info, gpointer n_dropped)
{
  ++*(guint *) n_dropped;
  return GST_PAD_PROBE_DROP;
}

static void
a_sent_packet_is_not_kept (Fixture *f, gconstpointer unused)
{
  GstPad *pad = gst_element_get_static_pad (f->sink, "sink");
  guint n_dropped = 0;
  gboolean freed;

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, drop, &n_dropped, NULL);
  gst_object_unref (pad);
  relay_push (f->source, 0, watched_new (1, f->ssrc, &freed), SECOND, RELAY_NO_BASE);
  g_assert_cmpuint (n_dropped, ==, 1);
  g_assert_true (freed);
}

// Held packets would keep their pools, and the pools' file descriptors, while the mount is idle.
static void
the_end_of_a_source_frees_held_packets (void)
{
  Relay *relay = relay_new ();
  RelaySource *source = relay_source_new (relay, NULL, NULL);
  gboolean freed;

  relay_expect_sinks (relay, TRUE);
  begin (source, H264);
  relay_push (source, 0, watched_new (1, 1, &freed), SECOND, RELAY_NO_BASE);
  g_assert_false (freed);
  relay_source_end (source);
  g_assert_true (freed);
  relay_source_unref (source);
  relay_unref (relay);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  gst_init (&argc, &argv);
  ADD ("/relay/a-second-run-continues-the-numbers", a_second_run_continues_the_numbers);
  ADD ("/relay/a-sent-packet-is-not-kept", a_sent_packet_is_not_kept);
  ADD ("/relay/a-new-ssrc-takes-over-after-silence", a_new_ssrc_takes_over_after_silence);
  ADD ("/relay/missing-packets-are-counted", missing_packets_are_counted);
  ADD ("/relay/malformed-packets-are-counted", malformed_packets_are_counted);
  ADD ("/relay/sender-reports-follow-the-source", sender_reports_follow_the_source);
  ADD ("/relay/a-standby-source-takes-over-at-its-join-point",
      a_standby_source_takes_over_at_its_join_point);
  ADD ("/relay/a-standby-source-does-not-wait-for-a-silent-one",
      a_standby_source_does_not_wait_for_a_silent_one);
  ADD ("/relay/a-source-with-other-tracks-does-not-take-over",
      a_source_with_other_tracks_does_not_take_over);
  ADD ("/relay/a-source-of-the-same-origin-continues-at-the-same-instant",
      a_source_of_the_same_origin_continues_at_the_same_instant);
  ADD ("/relay/a-new-relay-at-an-old-address-is-another-origin",
      a_new_relay_at_an_old_address_is_another_origin);
  g_test_add_func (
      "/relay/the-end-of-a-source-frees-held-packets", the_end_of_a_source_frees_held_packets);
  g_test_add_func (
      "/relay/parameter-sets-in-band-are-published", parameter_sets_in_band_are_published);
  g_test_add_func ("/relay/a-source-learns-whether-its-tracks-changed",
      a_source_learns_whether_its_tracks_changed);
  g_test_add_func (
      "/relay/private-fields-do-not-make-tracks-differ", private_fields_do_not_make_tracks_differ);
  g_test_add_func (
      "/relay/a-language-is-told-if-it-has-the-form", a_language_is_told_if_it_has_the_form);
  g_test_add_func ("/relay/only-the-codec-is-published", only_the_codec_is_published);
  return g_test_run ();
}
