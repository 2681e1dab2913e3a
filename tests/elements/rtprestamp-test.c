// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gst/check/gstharness.h>
#include <gst/gst.h>

#define CAPS "application/x-rtp,media=video,clock-rate=90000"
#define FRAME 3600 // ticks in 40 ms

static GstBuffer *
make_packet (guint16 seq, guint32 timestamp)
{
  guint8 data[20] = { 0x80, 0xe0 };

  GST_WRITE_UINT16_BE (data + 2, seq);
  GST_WRITE_UINT32_BE (data + 4, timestamp);
  return gst_buffer_new_memdup (data, sizeof data);
}

static guint32
read_timestamp (GstBuffer *buffer)
{
  guint8 data[12];

  g_assert_cmpuint (gst_buffer_extract (buffer, 0, data, 12), ==, 12);
  return GST_READ_UINT32_BE (data + 4);
}

static GstHarness *
make_harness (void)
{
  GstHarness *h = gst_harness_new ("rtprestamp");

  gst_harness_use_testclock (h);
  gst_harness_set_src_caps_str (h, CAPS);
  return h;
}

static guint64
count (GstHarness *h, const gchar *field)
{
  GstStructure *stats;
  guint64 n = 0;

  g_object_get (h->element, "stats", &stats, NULL);
  g_assert_true (gst_structure_get_uint64 (stats, field, &n));
  gst_structure_free (stats);
  return n;
}

static void
expect (GstHarness *h, guint ms, guint16 seq, guint32 in, guint32 out)
{
  GstBuffer *buffer;

  gst_harness_set_time (h, ms * GST_MSECOND);
  g_assert_cmpint (gst_harness_push (h, make_packet (seq, in)), ==, GST_FLOW_OK);
  buffer = gst_harness_pull (h);
  g_assert_cmpuint (read_timestamp (buffer), ==, out);
  gst_buffer_unref (buffer);
}

static void
test_valid_packets_pass_unchanged (void)
{
  GstHarness *h = make_harness ();

  for (guint16 i = 0; i < 10; i++) {
    GstBuffer *in = make_packet (i, i * FRAME);

    gst_harness_set_time (h, i * 40 * GST_MSECOND);
    gst_harness_push (h, gst_buffer_ref (in));
    g_assert_true (gst_harness_pull (h) == in);
    gst_buffer_unref (in);
    gst_buffer_unref (in);
  }
  g_assert_cmpuint (count (h, "packets"), ==, 10);
  gst_harness_teardown (h);
}

static void
test_faults_are_repaired_and_counted (void)
{
  GstHarness *h = make_harness ();

  expect (h, 0, 1, 1000000, 1000000);
  expect (h, 40, 2, 2000000, 1000000 + FRAME);
  expect (h, 80, 3, 2000000 + FRAME, 1000000 + 2 * FRAME);
  expect (h, 120, 4, 5, 1000000 + 3 * FRAME);
  expect (h, 10120, 5, 5, 1000000 + 3 * FRAME + 900000);
  g_assert_cmpuint (count (h, "packets"), ==, 5);
  g_assert_cmpuint (count (h, "jumps"), ==, 1);
  g_assert_cmpuint (count (h, "steps-back"), ==, 1);
  g_assert_cmpuint (count (h, "stalls"), ==, 1);
  gst_harness_teardown (h);
}

static void
test_limit_sets_the_largest_jump (void)
{
  GstHarness *h = make_harness ();

  g_object_set (h->element, "limit", 20 * GST_SECOND, NULL);
  expect (h, 0, 1, 0, 0);
  expect (h, 40, 2, 10 * 90000, 10 * 90000);
  expect (h, 80, 3, 40 * 90000, 10 * 90000 + FRAME);
  gst_harness_teardown (h);
}

static void
test_shared_buffers_are_not_modified (void)
{
  GstHarness *h = make_harness ();
  GstBufferList *list = gst_buffer_list_new (), *shared;
  GstPad *pad = gst_element_get_static_pad (h->element, "sink");
  static const guint32 out[] = { 900000, 900001, 900001 };

  gst_buffer_list_add (list, make_packet (1, 900000));
  gst_buffer_list_add (list, make_packet (2, 5));
  gst_buffer_list_add (list, make_packet (3, 5));
  shared = gst_buffer_list_ref (list);
  g_assert_cmpint (gst_pad_chain_list (pad, list), ==, GST_FLOW_OK);
  for (guint i = 0; i < G_N_ELEMENTS (out); i++) {
    GstBuffer *buffer = gst_harness_pull (h);

    g_assert_cmpuint (read_timestamp (buffer), ==, out[i]);
    g_assert_cmpuint (gst_buffer_get_size (buffer), ==, 20);
    gst_buffer_unref (buffer);
  }
  g_assert_cmpuint (read_timestamp (gst_buffer_list_get (shared, 1)), ==, 5);
  gst_buffer_list_unref (shared);
  gst_object_unref (pad);
  gst_harness_teardown (h);
}

static void
test_non_rtp_passes_unchanged (void)
{
  GstHarness *h = make_harness ();
  GstBuffer *in = gst_buffer_new_allocate (NULL, 3, NULL), *out;

  gst_buffer_memset (in, 0, 0xff, 3);
  gst_harness_push (h, in);
  out = gst_harness_pull (h);
  g_assert_true (out == in);
  gst_buffer_unref (out);
  gst_harness_push (h, gst_buffer_new ());
  gst_buffer_unref (gst_harness_pull (h));
  g_assert_cmpuint (count (h, "not-rtp"), ==, 2);
  g_assert_cmpuint (count (h, "packets"), ==, 0);
  gst_harness_teardown (h);
}

static void
test_a_restart_begins_a_new_timeline (void)
{
  GstHarness *h = make_harness ();

  expect (h, 0, 1, 1000000, 1000000);
  expect (h, 40, 2, 5, 1000000 + FRAME);
  gst_element_set_state (h->element, GST_STATE_NULL);
  g_assert_cmpuint (count (h, "packets"), ==, 0);
  gst_harness_teardown (h);

  h = make_harness ();
  expect (h, 0, 1, 1000000, 1000000);
  gst_harness_set_src_caps_str (h, CAPS ",seqnum-offset=(uint)7");
  expect (h, 40, 2, 5, 1000000 + FRAME); // new caps do not start a new stream
  gst_harness_teardown (h);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/rtprestamp/valid-packets-pass-unchanged", test_valid_packets_pass_unchanged);
  g_test_add_func (
      "/rtprestamp/faults-are-repaired-and-counted", test_faults_are_repaired_and_counted);
  g_test_add_func ("/rtprestamp/limit-sets-the-largest-jump", test_limit_sets_the_largest_jump);
  g_test_add_func (
      "/rtprestamp/shared-buffers-are-not-modified", test_shared_buffers_are_not_modified);
  g_test_add_func ("/rtprestamp/non-rtp-passes-unchanged", test_non_rtp_passes_unchanged);
  g_test_add_func (
      "/rtprestamp/a-restart-begins-a-new-timeline", test_a_restart_begins_a_new_timeline);
  return g_test_run ();
}
