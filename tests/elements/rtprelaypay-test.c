// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gst/check/gstharness.h>
#include <gst/gst.h>

static GstBuffer *
make_packet (guint pt, guint16 seq, guint32 timestamp, guint32 ssrc)
{
  guint8 data[20] = { 0x80, (guint8) pt };
  GstBuffer *buffer;

  GST_WRITE_UINT16_BE (data + 2, seq);
  GST_WRITE_UINT32_BE (data + 4, timestamp);
  GST_WRITE_UINT32_BE (data + 8, ssrc);
  buffer = gst_buffer_new_memdup (data, sizeof data);
  GST_BUFFER_PTS (buffer) = (GstClockTime) seq * GST_MSECOND;
  return buffer;
}

static GstHarness *
make_harness (const gchar *caps)
{
  GstHarness *h = gst_harness_new ("rtprelaypay");

  gst_harness_set_src_caps_str (h, caps);
  return h;
}

static void
test_passes_unchanged (void)
{
  GstHarness *h = make_harness ("application/x-rtp");
  GstBuffer *in = make_packet (96, 1, 2, 3), *out;
  GstBufferList *list = gst_buffer_list_new (), *shared;
  GstPad *pad;

  g_assert_cmpint (gst_harness_push (h, in), ==, GST_FLOW_OK);
  out = gst_harness_pull (h);
  g_assert_true (out == in);
  gst_buffer_unref (out);

  // A list that has another owner passes unchanged.
  for (guint16 i = 2; i < 6; i++)
    gst_buffer_list_add (list, make_packet (96, i, 2, 3));
  shared = gst_buffer_list_ref (list);
  pad = gst_element_get_static_pad (h->element, "sink");
  g_assert_cmpint (gst_pad_chain_list (pad, list), ==, GST_FLOW_OK);
  for (guint i = 0; i < 4; i++) {
    out = gst_harness_pull (h);
    g_assert_true (out == gst_buffer_list_get (shared, i));
    gst_buffer_unref (out);
  }
  gst_buffer_list_unref (shared);
  gst_object_unref (pad);
  gst_harness_teardown (h);
}

static void
test_properties_describe_the_last_packet (void)
{
  GstHarness *h = make_harness ("application/x-rtp,clock-rate=90000");
  guint pt, mtu, ssrc, seqnum, timestamp, timestamp_offset;
  gint seqnum_offset;
  GstStructure *stats;
  guint64 running_time;
  guint clock_rate;

  g_object_set (h->element, "pt", 101, "mtu", 1200, NULL);
  g_object_get (h->element, "pt", &pt, "ssrc", &ssrc, "seqnum-offset", &seqnum_offset, NULL);
  g_assert_cmpuint (pt, ==, 101);
  g_assert_cmpuint (ssrc, ==, G_MAXUINT32);
  g_assert_cmpint (seqnum_offset, ==, -1);

  gst_harness_push (h, make_packet (97, 100, 1000, 0xcafe));
  gst_harness_push (h, make_packet (97 | 0x80, 101, 4000, 0xcafe));
  g_object_get (h->element, "pt", &pt, "mtu", &mtu, "ssrc", &ssrc, "seqnum", &seqnum, "timestamp",
      &timestamp, "seqnum-offset", &seqnum_offset, "timestamp-offset", &timestamp_offset, "stats",
      &stats, NULL);
  g_assert_cmpuint (pt, ==, 97);
  g_assert_cmpuint (mtu, ==, 1200);
  g_assert_cmpuint (ssrc, ==, 0xcafe);
  g_assert_cmpuint (seqnum, ==, 101);
  g_assert_cmpuint (timestamp, ==, 4000);
  g_assert_cmpint (seqnum_offset, ==, 100);
  g_assert_cmpuint (timestamp_offset, ==, 1000);
  g_assert_true (gst_structure_get (stats, "running-time", G_TYPE_UINT64, &running_time,
      "clock-rate", G_TYPE_UINT, &clock_rate, "seqnum", G_TYPE_UINT, &seqnum, NULL));
  g_assert_cmpuint (running_time, ==, 101 * GST_MSECOND);
  g_assert_cmpuint (clock_rate, ==, 90000);
  g_assert_cmpuint (seqnum, ==, 101);
  gst_structure_free (stats);
  gst_harness_teardown (h);
}

static void
test_completes_caps (void)
{
  GstHarness *h = make_harness ("application/x-rtp");
  GstCaps *caps;
  GstStructure *s;
  guint ssrc, seqnum, timestamp;
  gint payload, clock_rate;
  GstEventType expected[] = { GST_EVENT_STREAM_START, GST_EVENT_CAPS, GST_EVENT_SEGMENT };

  g_assert_null (gst_pad_get_current_caps (h->sinkpad));
  gst_harness_push (h, make_packet (0, 7, 8, 9));
  caps = gst_pad_get_current_caps (h->sinkpad);
  s = gst_caps_get_structure (caps, 0);
  g_assert_true (gst_structure_get (s, "ssrc", G_TYPE_UINT, &ssrc, "payload", G_TYPE_INT, &payload,
      "clock-rate", G_TYPE_INT, &clock_rate, "seqnum-offset", G_TYPE_UINT, &seqnum,
      "timestamp-offset", G_TYPE_UINT, &timestamp, NULL));
  g_assert_cmpuint (ssrc, ==, 9);
  g_assert_cmpint (payload, ==, 0);
  g_assert_cmpint (clock_rate, ==, 8000);
  g_assert_cmpuint (seqnum, ==, 7);
  g_assert_cmpuint (timestamp, ==, 8);
  g_assert_cmpstr (gst_structure_get_string (s, "encoding-name"), ==, "PCMU");
  g_assert_cmpstr (gst_structure_get_string (s, "media"), ==, "audio");
  gst_caps_unref (caps);

  for (guint i = 0; i < G_N_ELEMENTS (expected); i++) {
    GstEvent *event = gst_harness_pull_event (h);

    g_assert_cmpint (GST_EVENT_TYPE (event), ==, expected[i]);
    gst_event_unref (event);
  }
  gst_harness_teardown (h);
}

static void
test_keeps_complete_caps (void)
{
  GstHarness *h = make_harness ("application/x-rtp,media=video,clock-rate=90000,payload=99,"
                                "encoding-name=H264,profile-level-id=42e01f,ssrc=(uint)5");
  GstCaps *caps;
  GstStructure *s;
  guint ssrc;
  gint payload;

  gst_harness_push (h, make_packet (96, 7, 8, 9));
  caps = gst_pad_get_current_caps (h->sinkpad);
  s = gst_caps_get_structure (caps, 0);
  g_assert_true (
      gst_structure_get (s, "ssrc", G_TYPE_UINT, &ssrc, "payload", G_TYPE_INT, &payload, NULL));
  g_assert_cmpuint (ssrc, ==, 5);
  g_assert_cmpint (payload, ==, 99);
  g_assert_cmpstr (gst_structure_get_string (s, "profile-level-id"), ==, "42e01f");
  gst_caps_unref (caps);
  gst_harness_teardown (h);
}

static GstEvent *
make_segment (GstClockTime start)
{
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  segment.start = segment.time = start;
  return gst_event_new_segment (&segment);
}

// Events held back for the caps go out when the caps are known, before later events.
static void
test_keeps_the_order_of_events (void)
{
  GstHarness *h = make_harness ("application/x-rtp,media=video");
  GstCaps *caps = gst_caps_from_string ("application/x-rtp,media=video,clock-rate=90000,"
                                        "encoding-name=H264,payload=99,ssrc=(uint)5");
  GstEvent *event;
  const GstSegment *segment;

  g_assert_true (gst_harness_push_event (h, make_segment (GST_SECOND)));
  g_assert_true (gst_harness_push_event (h, gst_event_new_caps (caps)));
  g_assert_true (gst_harness_push_event (h, make_segment (2 * GST_SECOND)));
  g_assert_cmpint (gst_harness_push (h, make_packet (99, 1, 2, 5)), ==, GST_FLOW_OK);
  event = gst_pad_get_sticky_event (h->sinkpad, GST_EVENT_SEGMENT, 0);
  gst_event_parse_segment (event, &segment);
  g_assert_cmpuint (segment->start, ==, 2 * GST_SECOND);
  gst_event_unref (event);
  gst_caps_unref (caps);
  gst_harness_teardown (h);
}

static void
test_drops_non_rtp (void)
{
  GstHarness *h = make_harness ("application/x-rtp");
  GstBufferList *list = gst_buffer_list_new ();
  GstPad *pad = gst_element_get_static_pad (h->element, "sink");
  GstStructure *stats;
  guint64 packets, not_rtp;

  gst_harness_push (h, gst_buffer_new_memdup ("nonsense", 8));
  gst_harness_push (h, gst_buffer_new ());
  gst_buffer_list_add (list, gst_buffer_new_memdup ("nonsense, longer", 16));
  gst_buffer_list_add (list, make_packet (96, 1, 1, 1));
  gst_buffer_list_add (list, gst_buffer_new_memdup ("nonsense, longer", 16));
  g_assert_cmpint (gst_pad_chain_list (pad, list), ==, GST_FLOW_OK);
  list = gst_buffer_list_new ();
  gst_buffer_list_add (list, gst_buffer_new ());
  g_assert_cmpint (gst_pad_chain_list (pad, list), ==, GST_FLOW_OK);
  g_assert_cmpuint (gst_harness_buffers_received (h), ==, 1);
  g_object_get (h->element, "stats", &stats, NULL);
  g_assert_true (gst_structure_get (
      stats, "packets", G_TYPE_UINT64, &packets, "not-rtp", G_TYPE_UINT64, &not_rtp, NULL));
  g_assert_cmpuint (packets, ==, 1);
  g_assert_cmpuint (not_rtp, ==, 5);
  gst_structure_free (stats);
  gst_object_unref (pad);
  gst_harness_teardown (h);
}

static GstBuffer *
make_padded_packet (guint8 padding)
{
  GstBuffer *packet = make_packet (96, 1, 1, 1);

  gst_buffer_memset (packet, 0, 0xa0, 1);
  gst_buffer_memset (packet, 19, padding, 1);
  return packet;
}

static void
test_accepts_valid_padding (void)
{
  GstHarness *h = make_harness ("application/x-rtp");

  gst_harness_push (h, make_padded_packet (0));
  gst_harness_push (h, make_padded_packet (9));
  g_assert_cmpuint (gst_harness_buffers_received (h), ==, 0);
  gst_harness_push (h, make_padded_packet (8));
  gst_harness_push (h, make_padded_packet (1));
  g_assert_cmpuint (gst_harness_buffers_received (h), ==, 2);
  gst_harness_teardown (h);
}

// EOS before any packet releases the events held back; nothing is lost or leaks.
static void
test_eos_before_a_packet_releases_events (void)
{
  GstHarness *h = make_harness ("application/x-rtp,media=video");
  GstEvent *event;
  GstEventType last = GST_EVENT_UNKNOWN;

  g_assert_true (gst_harness_push_event (h, gst_event_new_eos ()));
  while ((event = gst_harness_try_pull_event (h))) {
    last = GST_EVENT_TYPE (event);
    gst_event_unref (event);
  }
  g_assert_cmpint (last, ==, GST_EVENT_EOS);
  gst_harness_teardown (h);
}

// The element has the payloader properties that gst-rtsp-server reads.
static void
test_looks_like_a_payloader (void)
{
  static const gchar *const names[] = { "pt", "mtu", "ssrc", "seqnum", "timestamp", "seqnum-offset",
    "timestamp-offset", "stats" };
  GstElement *stock = gst_element_factory_make ("rtpvp8pay", NULL);
  GstElement *ours = gst_element_factory_make ("rtprelaypay", NULL);
  const gchar *klass = gst_element_class_get_metadata (GST_ELEMENT_GET_CLASS (ours), "klass");

  g_assert_cmpstr (klass, ==, "Codec/Payloader/Network/RTP");
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    GParamSpec *a = g_object_class_find_property (G_OBJECT_GET_CLASS (stock), names[i]);
    GParamSpec *b = g_object_class_find_property (G_OBJECT_GET_CLASS (ours), names[i]);

    g_test_message ("%s", names[i]);
    g_assert_nonnull (b);
    g_assert_cmpstr (g_type_name (a->value_type), ==, g_type_name (b->value_type));
    if (a->value_type != GST_TYPE_STRUCTURE)
      g_assert_cmpint (g_param_values_cmp (a, g_param_spec_get_default_value (a),
                           g_param_spec_get_default_value (b)),
          ==, 0);
  }
  gst_object_unref (stock);
  gst_object_unref (ours);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/rtprelaypay/passes-unchanged", test_passes_unchanged);
  g_test_add_func (
      "/rtprelaypay/properties-describe-the-last-packet", test_properties_describe_the_last_packet);
  g_test_add_func ("/rtprelaypay/completes-caps", test_completes_caps);
  g_test_add_func ("/rtprelaypay/keeps-complete-caps", test_keeps_complete_caps);
  g_test_add_func ("/rtprelaypay/keeps-the-order-of-events", test_keeps_the_order_of_events);
  g_test_add_func ("/rtprelaypay/drops-non-rtp", test_drops_non_rtp);
  g_test_add_func ("/rtprelaypay/accepts-valid-padding", test_accepts_valid_padding);
  g_test_add_func (
      "/rtprelaypay/eos-before-a-packet-releases-events", test_eos_before_a_packet_releases_events);
  g_test_add_func ("/rtprelaypay/looks-like-a-payloader", test_looks_like_a_payloader);
  return g_test_run ();
}
