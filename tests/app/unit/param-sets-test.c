// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/param_sets.h"

#define SPS 0, 0, 1, 0x67, 0x42, 0xc0, 0x1e, 0x95
#define PPS 0, 0, 1, 0x68, 0xce, 0x3c, 0x80
#define SLICE 0, 0, 1, 0x65, 0x88, 0x84, 0x21
#define OTHER_SLICE 0, 0, 1, 0x65, 0x08, 0x84, 0x21

typedef struct {
  GstElement *pipeline, *payloader;
  GByteArray *got; // what the payloader gets of the newest picture
} Fixture;

static GstPadProbeReturn
on_picture (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  Fixture *f = data;
  GstMapInfo map;

  gst_buffer_map (GST_PAD_PROBE_INFO_BUFFER (info), &map, GST_MAP_READ);
  g_byte_array_set_size (f->got, 0);
  g_byte_array_append (f->got, map.data, (guint) map.size);
  gst_buffer_unmap (GST_PAD_PROBE_INFO_BUFFER (info), &map);
  return GST_PAD_PROBE_OK;
}

static void
set_up (Fixture *f, gconstpointer unused)
{
  GstPad *pad;
  GstCaps *caps = gst_caps_from_string (
      "video/x-h264, stream-format=(string)byte-stream, alignment=(string)au");
  GstSegment segment;

  f->pipeline =
      gst_parse_launch ("rtph264pay name=payloader ! fakesink async=false sync=false", NULL);
  g_assert_nonnull (f->pipeline);
  f->payloader = gst_bin_get_by_name (GST_BIN (f->pipeline), "payloader");
  f->got = g_byte_array_new ();
  param_sets_add (f->payloader);
  pad = gst_element_get_static_pad (f->payloader, "sink");
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, on_picture, f, NULL);
  gst_element_set_state (f->pipeline, GST_STATE_PLAYING);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_pad_send_event (pad, gst_event_new_stream_start ("test"));
  gst_pad_send_event (pad, gst_event_new_caps (caps));
  gst_pad_send_event (pad, gst_event_new_segment (&segment));
  gst_caps_unref (caps);
  gst_object_unref (pad);
}

static void
tear_down (Fixture *f, gconstpointer unused)
{
  gst_element_set_state (f->pipeline, GST_STATE_NULL);
  gst_object_unref (f->payloader);
  gst_object_unref (f->pipeline);
  g_byte_array_unref (f->got);
}

static void
check (Fixture *f, const guint8 *picture, gsize size, const guint8 *expected, gsize n_expected)
{
  GstPad *pad = gst_element_get_static_pad (f->payloader, "sink");
  GstBuffer *buffer = gst_buffer_new_memdup (picture, size);

  GST_BUFFER_PTS (buffer) = 0;
  g_assert_cmpint (gst_pad_chain (pad, buffer), ==, GST_FLOW_OK);
  g_assert_cmpmem (f->got->data, f->got->len, expected, n_expected);
  gst_object_unref (pad);
}

#define CHECK(f, picture, expected) check (f, picture, sizeof picture, expected, sizeof expected)

static void
what_is_missing_comes_before_the_first_slice (Fixture *f, gconstpointer unused)
{
  static const guint8 whole[] = { SPS, PPS, SLICE, OTHER_SLICE }, bare[] = { SLICE, OTHER_SLICE },
                      completed[] = { 0, SPS, 0, PPS, SLICE, OTHER_SLICE };

  CHECK (f, whole, whole);
  CHECK (f, bare, completed);
  CHECK (f, whole, whole);
}

// The stream has never had what the keyframe lacks.
static void
what_is_not_known_is_not_written (Fixture *f, gconstpointer unused)
{
  static const guint8 picture[] = { SPS, SLICE };

  CHECK (f, picture, picture);
  CHECK (f, picture, picture);
}

#define ADD(name, check) g_test_add (name, Fixture, NULL, set_up, check, tear_down)

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  ADD ("/param-sets/missing", what_is_missing_comes_before_the_first_slice);
  ADD ("/param-sets/not-known", what_is_not_known_is_not_written);
  return g_test_run ();
}
