// SPDX-License-Identifier: LGPL-2.1-or-later
// VP8 with three temporal layers, from GStreamer's encoder and payloader through svclayerfilter to
// GStreamer's depayloader and decoder: fewer layers show fewer of the same pictures, bit by bit.
#include <gst/check/gstharness.h>
#include <gst/gst.h>

#define N_FRAMES 40
#define FRAME (GST_SECOND / 30)
#define WIDTH 320
#define HEIGHT 180

static const gint pattern[] = { 0, 2, 1, 2 };

static GPtrArray *packets; // list of GstBuffer
static GstCaps *caps;
static gchar *reference[N_FRAMES];

static void
set_ints (GstElement *encoder, const gchar *name, const gint *values, guint n)
{
  GValueArray *array;

  G_GNUC_BEGIN_IGNORE_DEPRECATIONS;
  array = g_value_array_new (n);
  for (guint i = 0; i < n; i++) {
    GValue value = G_VALUE_INIT;

    g_value_init (&value, G_TYPE_INT);
    g_value_set_int (&value, values[i]);
    g_value_array_append (array, &value);
  }
  g_object_set (encoder, name, array, NULL);
  g_value_array_free (array);
  G_GNUC_END_IGNORE_DEPRECATIONS;
}

// Each layer refers only to lower layers, or to itself within the same half of the pattern.
static void
set_flags (GstElement *encoder)
{
#define NO_UPDATE "no-upd-last+no-upd-golden+no-upd-alt+no-upd-entropy"
  static const gchar *const flags[] = {
    "no-ref-golden+no-ref-alt+no-upd-golden+no-upd-alt",
    "no-ref-golden+no-ref-alt+" NO_UPDATE,
    "no-ref-golden+no-ref-alt+no-upd-last+no-upd-alt+no-upd-entropy",
    "no-ref-alt+" NO_UPDATE,
  };
  GValue array = G_VALUE_INIT;

  g_value_init (&array, GST_TYPE_ARRAY);
  for (guint i = 0; i < G_N_ELEMENTS (flags); i++) {
    GValue value = G_VALUE_INIT;

    g_value_init (&value, g_type_from_name ("GstVPXEncTsLayerFlags"));
    g_assert_true (gst_value_deserialize (&value, flags[i]));
    gst_value_array_append_and_take_value (&array, &value);
  }
  g_object_set_property (G_OBJECT (encoder), "temporal-scalability-layer-flags", &array);
  g_value_unset (&array);
}

// Sets the sync flags, because vp8enc divides by their number.
static void
set_sync_flags (GstElement *encoder)
{
  static const gboolean sync[] = { FALSE, TRUE, TRUE, FALSE };
  GValue array = G_VALUE_INIT;

  g_value_init (&array, GST_TYPE_ARRAY);
  for (guint i = 0; i < G_N_ELEMENTS (sync); i++) {
    GValue value = G_VALUE_INIT;

    g_value_init (&value, G_TYPE_BOOLEAN);
    g_value_set_boolean (&value, sync[i]);
    gst_value_array_append_and_take_value (&array, &value);
  }
  g_object_set_property (G_OBJECT (encoder), "temporal-scalability-layer-sync-flags", &array);
  g_value_unset (&array);
}

static GstBuffer *
picture (guint n)
{
  gsize size = WIDTH * HEIGHT * 3 / 2;
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, size, NULL);
  GstMapInfo map;

  gst_buffer_map (buffer, &map, GST_MAP_WRITE);
  for (gsize i = 0; i < size; i++)
    map.data[i] = (guint8) ((i % WIDTH + n * 5) * (i / WIDTH / 16 + 1));
  gst_buffer_unmap (buffer, &map);
  GST_BUFFER_PTS (buffer) = n * FRAME;
  GST_BUFFER_DURATION (buffer) = FRAME;
  return buffer;
}

static void
encode (void)
{
  static const gint decimators[] = { 4, 2, 1 }, bitrates[] = { 200000, 300000, 500000 };
  GstHarness *h = gst_harness_new_parse (
      "vp8enc name=encoder deadline=1 threads=1 keyframe-max-dist=1000 end-usage=cbr "
      "target-bitrate=500000 error-resilient=partitions "
      "temporal-scalability-number-layers=3 temporal-scalability-periodicity=4 ! "
      "rtpvp8pay mtu=1000 picture-id-mode=15-bit picture-id-offset=32760");
  GstElement *encoder = gst_bin_get_by_name (GST_BIN (h->element), "encoder");
  GstBuffer *buffer;

  set_ints (encoder, "temporal-scalability-layer-id", pattern, 4);
  set_ints (encoder, "temporal-scalability-rate-decimator", decimators, 3);
  set_ints (encoder, "temporal-scalability-target-bitrate", bitrates, 3);
  set_flags (encoder);
  set_sync_flags (encoder);
  gst_harness_set_src_caps_str (h, "video/x-raw,format=I420,width=320,height=180,framerate=30/1");
  for (guint i = 0; i < N_FRAMES; i++)
    g_assert_cmpint (gst_harness_push (h, picture (i)), ==, GST_FLOW_OK);
  gst_harness_push_event (h, gst_event_new_eos ());
  packets = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_buffer_unref);
  while ((buffer = gst_harness_try_pull (h)))
    g_ptr_array_add (packets, buffer);
  caps = gst_pad_get_current_caps (h->sinkpad);
  gst_object_unref (encoder);
  gst_harness_teardown (h);
}

// Returns the checksum of a shown picture, and its number, `i`, derived from its time. Takes
// ownership of `buffer`.
static gchar *
sum_of (GstBuffer *buffer, guint *i)
{
  GstMapInfo map;
  gchar *sum;

  *i = (guint) ((GST_BUFFER_PTS (buffer) + FRAME / 2) / FRAME);
  gst_buffer_map (buffer, &map, GST_MAP_READ);
  sum = g_compute_checksum_for_data (G_CHECKSUM_MD5, map.data, map.size);
  gst_buffer_unmap (buffer, &map);
  gst_buffer_unref (buffer);
  return sum;
}

static GstHarness *
play (const gchar *line)
{
  GstHarness *h = gst_harness_new_parse (line);

  gst_harness_set_src_caps (h, gst_caps_ref (caps));
  for (guint i = 0; i < packets->len; i++)
    g_assert_cmpint (
        gst_harness_push (h, gst_buffer_copy_deep (packets->pdata[i])), ==, GST_FLOW_OK);
  gst_harness_push_event (h, gst_event_new_eos ());
  return h;
}

static void
make_reference (void)
{
  GstHarness *h = play ("rtpvp8depay ! vp8dec");
  GstBuffer *buffer;
  guint i, n = 0;

  while ((buffer = gst_harness_try_pull (h))) {
    gchar *sum = sum_of (buffer, &i);

    g_assert_cmpuint (i, <, N_FRAMES);
    reference[i] = sum;
    n++;
  }
  g_assert_cmpuint (n, ==, N_FRAMES);
  gst_harness_teardown (h);
}

static void
test_fewer_layers_show_the_same_pictures (void)
{
  for (gint temporal = 0; temporal < 3; temporal++) {
    gchar *line =
        g_strdup_printf ("svclayerfilter max-temporal=%d ! rtpvp8depay ! vp8dec", temporal);
    GstHarness *h = play (line);
    GstBuffer *buffer;
    guint i, n = 0;

    while ((buffer = gst_harness_try_pull (h))) {
      gchar *sum = sum_of (buffer, &i);

      g_assert_cmpint (pattern[i % 4], <=, temporal);
      g_assert_cmpstr (sum, ==, reference[i]);
      g_free (sum);
      n++;
    }
    g_assert_cmpuint (n, ==, N_FRAMES >> (2 - temporal));
    gst_harness_teardown (h);
    g_free (line);
  }
}

// The picture numbers increase by one, across their wrap.
static void
test_picture_ids_stay_consecutive (void)
{
  GstHarness *h = play ("svclayerfilter max-temporal=0");
  GstBuffer *buffer;
  guint n = 0;

  while ((buffer = gst_harness_try_pull (h))) {
    guint8 head[16];

    gst_buffer_extract (buffer, 0, head, sizeof head);
    g_assert_cmpuint ((GST_READ_UINT16_BE (head + 14) - (32760 + n)) & 0x7fff, ==, 0);
    n += head[1] >> 7;
    gst_buffer_unref (buffer);
  }
  g_assert_cmpuint (n, ==, N_FRAMES / 4);
  gst_harness_teardown (h);
}

int
main (int argc, char **argv)
{
  int r;

  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  encode ();
  make_reference ();
  g_test_add_func (
      "/vp8-layers/fewer-layers-show-the-same-pictures", test_fewer_layers_show_the_same_pictures);
  g_test_add_func ("/vp8-layers/picture-ids-stay-consecutive", test_picture_ids_stay_consecutive);
  r = g_test_run ();
  for (guint i = 0; i < N_FRAMES; i++)
    g_free (reference[i]);
  g_ptr_array_unref (packets);
  gst_caps_unref (caps);
  return r;
}
