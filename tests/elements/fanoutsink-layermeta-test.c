// SPDX-License-Identifier: LGPL-2.1-or-later
// Layers of fanoutsink: layer meta on buffers, statistics, keyframe requests, refused arguments.
#include <gst/check/gstharness.h>
#include <gst/gst.h>

#include "avc.h"

#define CAPS "application/x-rtp,media=video,clock-rate=90000,encoding-name=H264,payload=96"

static GstHarness *
make_sink (const gchar *launch, GstElement **sink)
{
  GstHarness *h = gst_harness_new_parse (launch);

  gst_harness_set_src_caps_str (h, CAPS);
  *sink = gst_harness_find_element (h, "fanoutsink");
  return h;
}

// Adds a reader on a closed port; the tests look only at counts.
static void
add_reader (GstElement *sink, gint spatial, gint temporal)
{
  gboolean ok;

  g_signal_emit_by_name (sink, "set-layers", "127.0.0.1", 9, spatial, -1, temporal, &ok);
  g_assert_false (ok); // the reader is not added yet
  g_signal_emit_by_name (sink, "add", "127.0.0.1", 9);
}

static guint
push_file (GstHarness *h, const gchar *name)
{
  AvcRtp rtp;
  Avc avc;

  g_assert_true (avc_load (&avc, name));
  rtp = avc_packetize (&avc, FALSE, 0);
  for (gsize i = 0; i < rtp.n; i++)
    g_assert_cmpint (
        gst_harness_push (h, gst_buffer_new_memdup (rtp.packets[i].data, rtp.packets[i].len)), ==,
        GST_FLOW_OK);
  gst_harness_push_event (h, gst_event_new_eos ());
  free (rtp.packets);
  avc_free (&avc);
  return (guint) rtp.n;
}

static guint64
get (const GstStructure *stats, const gchar *field)
{
  guint64 value;

  g_assert_true (gst_structure_get_uint64 (stats, field, &value));
  return value;
}

static GstStructure *
get_stats (GstElement *sink)
{
  GstStructure *stats;

  g_signal_emit_by_name (sink, "get-stats", "127.0.0.1", 9, &stats);
  return stats;
}

static void
finish (GstHarness *h, GstElement *sink)
{
  gst_object_unref (sink);
  gst_harness_teardown (h);
}

static void
test_uses_the_layer_meta (void)
{
  guint64 left_out[2];

  for (guint i = 0; i < 2; i++) {
    GstElement *sink;
    GstHarness *h = make_sink (i ? "svclayerfilter mode=tag infer-temporal=true ! fanoutsink"
                                 : "svclayerfilter mode=tag ! fanoutsink",
        &sink);
    GstStructure *stats;
    guint n;

    add_reader (sink, -1, 0);
    n = push_file (h, "avc_4t.264");
    stats = get_stats (sink);
    g_assert_cmpuint (get (stats, "packets-due"), ==, n);
    left_out[i] = get (stats, "dropped-layers");
    gst_structure_free (stats);
    finish (h, sink);
  }
  // Without the meta, these packets do not show their layer.
  g_assert_cmpuint (left_out[0], ==, 0);
  g_assert_cmpuint (left_out[1], >, 100);
}

static void
test_lists_the_layers (void)
{
  GstElement *sink;
  GstHarness *h = make_sink ("fanoutsink join=keyframe", &sink);
  GstStructure *stats;
  const GValue *layers;
  gint spatial, quality, temporal;

  add_reader (sink, 1, 0);
  push_file (h, "svc_3s3t.264");
  stats = get_stats (sink);
  g_assert_true (gst_structure_get (stats, "wanted-spatial", G_TYPE_INT, &spatial, "wanted-quality",
      G_TYPE_INT, &quality, "wanted-temporal", G_TYPE_INT, &temporal, NULL));
  g_assert_cmpint (spatial, ==, 1);
  g_assert_cmpint (quality, ==, -1);
  g_assert_cmpint (temporal, ==, 0);
  g_assert_true (gst_structure_get (
      stats, "spatial", G_TYPE_INT, &spatial, "temporal", G_TYPE_INT, &temporal, NULL));
  g_assert_cmpint (spatial, ==, 1);
  g_assert_cmpint (temporal, ==, 0);
  g_assert_cmpuint (get (stats, "left-out"), ==, get (stats, "dropped-layers"));
  g_assert_cmpuint (get (stats, "left-out"), >, 900);
  gst_structure_free (stats);

  g_object_get (sink, "fanout-stats", &stats, NULL);
  layers = gst_structure_get_value (stats, "layers");
  g_assert_cmpuint (gst_value_array_get_size (layers), ==, 9);
  for (guint i = 0; i < 9; i++) {
    const GstStructure *layer = gst_value_get_structure (gst_value_array_get_value (layers, i));

    g_assert_true (gst_structure_get (
        layer, "spatial", G_TYPE_INT, &spatial, "temporal", G_TYPE_INT, &temporal, NULL));
    g_assert_cmpint (spatial, ==, i / 3);
    g_assert_cmpint (temporal, ==, i % 3);
    g_assert_cmpuint (get (layer, "bytes"), >, 0);
  }
  gst_structure_free (stats);
  finish (h, sink);
}

static guint
count_key_units (GstHarness *h)
{
  GstEvent *event;
  guint n = 0;

  while ((event = gst_harness_try_pull_upstream_event (h))) {
    n += gst_event_has_name (event, "GstForceKeyUnit");
    gst_event_unref (event);
  }
  return n;
}

static void
test_asks_for_a_keyframe_to_change_layers (void)
{
  GstElement *sink;
  GstHarness *h = make_sink ("fanoutsink join=keyframe", &sink);
  gboolean ok;
  guint n = 0;
  AvcRtp rtp;
  Avc avc;

  g_assert_true (avc_load (&avc, "svc_3s3t.264"));
  rtp = avc_packetize (&avc, FALSE, 0);
  count_key_units (h);
  // The reader is added when the layers are known. From packet 7 to 577 there is no keyframe.
  for (gsize i = 0; i < 570; i++) {
    gst_harness_push (h, gst_buffer_new_memdup (rtp.packets[i].data, rtp.packets[i].len));
    if (i == 100)
      add_reader (sink, 0, -1);
    if (i == 300) {
      g_assert_cmpuint (count_key_units (h), ==, 0);
      g_signal_emit_by_name (sink, "set-layers", "127.0.0.1", 9, 2, -1, -1, &ok);
    }
    // A worker applies the choice.
    if (i > 100 && n == 0)
      g_usleep (2000);
    if (i > 300)
      n += count_key_units (h);
  }
  // The limit is one request a second, and the loop takes less.
  g_assert_cmpuint (n, ==, 1);
  free (rtp.packets);
  avc_free (&avc);
  finish (h, sink);
}

// The sink asks for a keyframe until one arrives, at most once a second.
static void
test_asks_for_a_keyframe_to_begin_with (void)
{
  GstElement *sink;
  GstHarness *h = make_sink ("fanoutsink join=keyframe", &sink);
  gint64 begun = g_get_monotonic_time ();
  guint n = 0;
  AvcRtp rtp;
  Avc avc;

  g_assert_true (avc_load (&avc, "svc_3s3t.264"));
  rtp = avc_packetize (&avc, FALSE, 0);
  count_key_units (h);
  g_signal_emit_by_name (sink, "add", "127.0.0.1", 9);
  // As above, there is no keyframe in this range.
  for (gsize i = 100; n < 2; i = i < 500 ? i + 1 : 100) {
    gst_harness_push (h, gst_buffer_new_memdup (rtp.packets[i].data, rtp.packets[i].len));
    n += count_key_units (h);
    g_assert_cmpint (g_get_monotonic_time () - begun, <, 10 * G_USEC_PER_SEC);
    g_usleep (1000);
  }
  g_assert_cmpint (g_get_monotonic_time () - begun, >=, G_USEC_PER_SEC);
  for (gsize i = 0; i < 7; i++)
    gst_harness_push (h, gst_buffer_new_memdup (rtp.packets[i].data, rtp.packets[i].len));
  begun = g_get_monotonic_time ();
  for (gsize i = 7; g_get_monotonic_time () - begun < 1200000; i = i < 500 ? i + 1 : 100) {
    gst_harness_push (h, gst_buffer_new_memdup (rtp.packets[i].data, rtp.packets[i].len));
    g_assert_cmpuint (count_key_units (h), ==, 0);
    g_usleep (1000);
  }
  free (rtp.packets);
  avc_free (&avc);
  finish (h, sink);
}

static void
test_refuses_layers_out_of_range (void)
{
  static const gint layers[][3] = { { 8, 0, 0 }, { -2, 0, 0 }, { 0, 16, 0 }, { 0, 0, 8 } };
  GstElement *sink;
  GstHarness *h = make_sink ("fanoutsink", &sink);
  gboolean ok;

  for (guint i = 0; i < G_N_ELEMENTS (layers); i++) {
    g_signal_emit_by_name (
        sink, "set-layers", "127.0.0.1", 9, layers[i][0], layers[i][1], layers[i][2], &ok);
    g_assert_false (ok);
  }
  g_signal_emit_by_name (sink, "set-layers", NULL, 9, 0, 0, 0, &ok);
  g_assert_false (ok);
  finish (h, sink);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/layers/uses-the-layer-meta", test_uses_the_layer_meta);
  g_test_add_func ("/layers/lists-the-layers", test_lists_the_layers);
  g_test_add_func (
      "/layers/asks-for-a-keyframe-to-change-layers", test_asks_for_a_keyframe_to_change_layers);
  g_test_add_func (
      "/layers/asks-for-a-keyframe-to-begin-with", test_asks_for_a_keyframe_to_begin_with);
  g_test_add_func ("/layers/refuses-layers-out-of-range", test_refuses_layers_out_of_range);
  return g_test_run ();
}
