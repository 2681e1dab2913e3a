// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests svcenc, svcdec, and svclayerfilter between them while layers change. Compares the decoder's
// pictures with its pictures of each layer alone.
#include <gst/check/gstharness.h>
#include <gst/gst.h>
#include <gst/video/video.h>

#include "avc.h"

#define H264_CAPS "video/x-h264,stream-format=byte-stream,alignment=au,profile=scalable-baseline"
#define RAW_CAPS "video/x-raw,format=I420,width=320,height=176,framerate=30/1"
#define FRAME (GST_SECOND / 30)
#define N_AUS 120

static Avc avc;

// Identifies a picture by its size and a checksum of its bytes.
static gchar *reference[3][N_AUS];

static gchar *
sum_of (GstBuffer *buffer)
{
  GstMapInfo map;
  gchar *sum;

  g_assert_true (gst_buffer_map (buffer, &map, GST_MAP_READ));
  sum = g_compute_checksum_for_data (G_CHECKSUM_MD5, map.data, map.size);
  gst_buffer_unmap (buffer, &map);
  return sum;
}

static GstBuffer *
au_buffer (guint au)
{
  static const guint8 start[4] = { 0, 0, 0, 1 };
  GByteArray *bytes = g_byte_array_new ();
  GstBuffer *buffer;
  gsize len;

  for (size_t i = 0; i < avc.n; i++) {
    if (avc.nals[i].au != au)
      continue;
    g_byte_array_append (bytes, start, 4);
    g_byte_array_append (bytes, avc.nals[i].data, (guint) avc.nals[i].len);
  }
  len = bytes->len;
  buffer = gst_buffer_new_wrapped (g_byte_array_free (bytes, FALSE), len);
  GST_BUFFER_PTS (buffer) = au * FRAME;
  return buffer;
}

static void
make_reference (void)
{
  for (gint spatial = 0; spatial < 3; spatial++) {
    GstHarness *h = gst_harness_new ("svcdec");

    g_object_set (h->element, "target-spatial", spatial, NULL);
    gst_harness_set_src_caps_str (h, H264_CAPS);
    for (guint au = 0; au < N_AUS; au++) {
      GstBuffer *buffer;

      g_assert_cmpint (gst_harness_push (h, au_buffer (au)), ==, GST_FLOW_OK);
      buffer = gst_harness_pull (h);
      g_assert_cmpuint (
          gst_buffer_get_size (buffer), ==, (320u << spatial) * (180u << spatial) * 3 / 2);
      reference[spatial][au] = sum_of (buffer);
      gst_buffer_unref (buffer);
    }
    gst_harness_teardown (h);
  }
}

static gint
temporal_of (guint au)
{
  static const gint temporal[] = { 0, 2, 1, 2 };
  return temporal[au % 4];
}

typedef struct {
  gint spatial, temporal;
} Wanted;

// Compares each shown picture with the reference of the layer that must be selected by then, and
// checks that no picture is missing.
static void
play (const Wanted *wanted)
{
  GstHarness *h = gst_harness_new_parse ("svclayerfilter name=filter ! svcdec name=decoder");
  GstElement *filter = gst_bin_get_by_name (GST_BIN (h->element), "filter");
  gint spatial = 0, temporal = 2;

  gst_harness_set_src_caps_str (h, H264_CAPS);
  for (guint au = 0; au < N_AUS; au++) {
    GstBuffer *buffer;

    g_object_set (
        filter, "max-spatial", wanted[au].spatial, "max-temporal", wanted[au].temporal, NULL);
    if (au % 60 == 0)
      spatial = wanted[au].spatial;
    if (wanted[au].temporal < temporal || temporal_of (au) == 0)
      temporal = wanted[au].temporal;
    g_assert_cmpint (gst_harness_push (h, au_buffer (au)), ==, GST_FLOW_OK);
    buffer = gst_harness_try_pull (h);
    g_assert_true ((buffer == NULL) == (temporal_of (au) > temporal));
    if (buffer) {
      gchar *sum = sum_of (buffer);

      g_assert_cmpstr (sum, ==, reference[spatial][au]);
      g_assert_cmpuint (GST_BUFFER_PTS (buffer), ==, au * FRAME);
      g_free (sum);
      gst_buffer_unref (buffer);
    }
  }
  gst_object_unref (filter);
  gst_harness_teardown (h);
}

static void
test_layers_switch_up_and_down (void)
{
  Wanted wanted[N_AUS];

  for (guint au = 0; au < N_AUS; au++) // switches in the middle of a GOP
    wanted[au] = au < 31 ? (Wanted) { 0, 0 } : (Wanted) { 2, 2 };
  play (wanted);
  for (guint au = 0; au < N_AUS; au++)
    wanted[au] = au < 35 ? (Wanted) { 2, 2 } : (Wanted) { 1, 0 };
  play (wanted);
}

static void
test_layers_switch_at_every_frame (void)
{
  Wanted wanted[N_AUS];

  for (guint au = 0; au < N_AUS; au++)
    wanted[au] = (Wanted) { (gint) (au % 3), (gint) (au / 3 % 3) };
  play (wanted);
}

static void
test_layers_switch_at_random (void)
{
  for (guint32 seed = 1; seed <= 4; seed++) {
    GRand *rand = g_rand_new_with_seed (seed);
    Wanted wanted[N_AUS];

    for (guint au = 0; au < N_AUS; au++) {
      wanted[au] = au > 0 ? wanted[au - 1] : (Wanted) { 1, 2 };
      if (g_rand_int_range (rand, 0, 5) == 0)
        wanted[au] = (Wanted) { g_rand_int_range (rand, 0, 3), g_rand_int_range (rand, 0, 3) };
    }
    g_rand_free (rand);
    play (wanted);
  }
}

/* svcenc */

static GstBuffer *
raw_buffer (guint n)
{
  gsize size = 320 * 176 * 3 / 2;
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, size, NULL);
  GstMapInfo map;

  gst_buffer_map (buffer, &map, GST_MAP_WRITE);
  for (gsize i = 0; i < size; i++)
    map.data[i] = (guint8) ((i % 320 + n * 3) ^ (i / 320));
  gst_buffer_unmap (buffer, &map);
  GST_BUFFER_PTS (buffer) = n * FRAME;
  GST_BUFFER_DURATION (buffer) = FRAME;
  return buffer;
}

// Returns the NAL units of a buffer.
static guint
units_of (GstBuffer *buffer, AvcNal *nals, guint room, GstMapInfo *map)
{
  guint n = 0;

  g_assert_true (gst_buffer_map (buffer, map, GST_MAP_READ));
  for (gsize i = 0; i + 3 < map->size; i++) {
    const guint8 *p = map->data + i;

    if (p[0] || p[1] || p[2] != 1)
      continue;
    g_assert_cmpuint (n, <, room);
    nals[n++] = (AvcNal) { .data = p + 3, .type = p[3] & 31 };
  }
  return n;
}

// Each picture has one slice per layer, in the pattern of its temporal layers. A requested key
// picture has all layers and all parameter sets.
static void
test_encodes_layers (void)
{
  GstHarness *h = gst_harness_new_parse ("svcenc spatial-layers=3 temporal-layers=3 gop-size=0 "
                                         "layer-bitrates=100000,200000,500000 "
                                         "layer-sizes=80x44,160x88,320x176");
  static const gint pattern[] = { 0, 2, 1, 2 };
  guint since_key = 0;

  gst_harness_set_src_caps_str (h, RAW_CAPS);
  for (guint n = 0; n < 30; n++, since_key++) {
    GstBuffer *buffer;
    GstMapInfo map;
    AvcNal nals[16];
    guint n_units, i = 0;
    gboolean key = n == 0 || n == 13;

    if (n == 13) {
      gst_harness_push_upstream_event (
          h, gst_video_event_new_upstream_force_key_unit (GST_CLOCK_TIME_NONE, TRUE, 1));
      since_key = 0;
    }
    g_assert_cmpint (gst_harness_push (h, raw_buffer (n)), ==, GST_FLOW_OK);
    buffer = gst_harness_pull (h);
    g_assert_cmpuint (GST_BUFFER_PTS (buffer), ==, n * FRAME);
    g_assert_true (GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_DELTA_UNIT) == !key);
    n_units = units_of (buffer, nals, 16, &map);
    g_assert_cmpuint (n_units, ==, key ? 10 : 4);
    if (key) {
      static const guint8 sets[] = { 7, 15, 15, 8, 8, 8 };

      for (; i < 6; i++)
        g_assert_cmpuint (nals[i].type, ==, sets[i]);
    }
    g_assert_cmpuint (nals[i].type, ==, 14);
    g_assert_cmpint (nals[i].data[3] >> 5, ==, pattern[since_key % 4]);
    g_assert_cmpuint (nals[i + 1].type, ==, key ? 5 : 1);
    for (guint spatial = 1; spatial < 3; spatial++) {
      const guint8 *data = nals[i + 1 + spatial].data;

      g_assert_cmpuint (data[0] & 31, ==, 20);
      g_assert_cmpint (data[1] >> 6 & 1, ==, key);
      g_assert_cmpuint (data[2] >> 4 & 7, ==, spatial);
    }
    gst_buffer_unmap (buffer, &map);
    gst_buffer_unref (buffer);
  }
  gst_harness_teardown (h);
}

static gint
width_of (GstHarness *h)
{
  GstCaps *now = gst_pad_get_current_caps (h->sinkpad);
  gint width = 0;

  gst_structure_get_int (gst_caps_get_structure (now, 0), "width", &width);
  gst_caps_unref (now);
  return width;
}

// The encoder makes no key pictures itself, but makes one when a higher layer is wanted.
static void
test_the_filter_requests_a_keyframe (void)
{
  GstHarness *h = gst_harness_new_parse (
      "svcenc gop-size=0 ! svclayerfilter name=filter max-spatial=0 output-mode=avc");
  GstElement *filter = gst_bin_get_by_name (GST_BIN (h->element), "filter");

  gst_harness_set_src_caps_str (h, RAW_CAPS);
  for (guint n = 0; n < 20; n++) {
    if (n == 10)
      g_object_set (filter, "max-spatial", 2, NULL);
    g_assert_cmpint (gst_harness_push (h, raw_buffer (n)), ==, GST_FLOW_OK);
    gst_buffer_unref (gst_harness_pull (h));
    // Requested at picture 10, encoded as picture 11.
    g_assert_cmpint (width_of (h), ==, n < 11 ? 80 : 320);
  }
  gst_object_unref (filter);
  gst_harness_teardown (h);
}

static void
check_refused_for (const gchar *line, const gchar *caps, const gchar *reason)
{
  GstHarness *h = gst_harness_new_parse (line);
  GstBus *bus = gst_bus_new ();
  GstMessage *message;
  GError *err;

  gst_element_set_bus (h->element, bus);
  gst_harness_set_src_caps_str (h, caps);
  gst_harness_push (h, raw_buffer (0));
  message = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR);
  g_test_message ("%s", line);
  g_assert_nonnull (message);
  gst_message_parse_error (message, &err, NULL);
  g_assert_nonnull (strstr (err->message, reason));
  g_error_free (err);
  gst_message_unref (message);
  g_assert_cmpuint (gst_harness_buffers_received (h), ==, 0);
  gst_element_set_bus (h->element, NULL);
  gst_object_unref (bus);
  gst_harness_teardown (h);
}

static void
check_refused (const gchar *line, const gchar *reason)
{
  check_refused_for (line, RAW_CAPS, reason);
}

static void
test_refuses_wrong_settings (void)
{
  check_refused ("svcenc layer-bitrates=100000", "not a list of 3 values");
  check_refused ("svcenc layer-bitrates=1000,2000,many", "\"many\"");
  check_refused ("svcenc layer-sizes=80x44,160x88,321x176",
      "\"321x176\" in layer-sizes=80x44,160x88,321x176 is not a size in even");
  check_refused ("svcenc layer-sizes=80x44,160x88,640x352", "layer sizes must grow");
  check_refused ("svcenc layer-sizes=160x88,80x44,320x176", "layer sizes must grow");
  check_refused ("svcenc spatial-layers=2 layer-sizes=8x8,320x176", "\"8x8\"");
  check_refused_for ("svcenc", "video/x-raw,format=I420,width=321,height=176,framerate=30/1",
      "321x176, but width and height must be even");
}

int
main (int argc, char **argv)
{
  int r;

  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_assert_true (avc_load (&avc, "svc_3s3t.264"));
  make_reference ();
  g_test_add_func ("/openh264/layers-switch-up-and-down", test_layers_switch_up_and_down);
  g_test_add_func ("/openh264/layers-switch-at-every-frame", test_layers_switch_at_every_frame);
  g_test_add_func ("/openh264/layers-switch-at-random", test_layers_switch_at_random);
  g_test_add_func ("/openh264/encodes-layers", test_encodes_layers);
  g_test_add_func ("/openh264/the-filter-requests-a-keyframe", test_the_filter_requests_a_keyframe);
  g_test_add_func ("/openh264/refuses-wrong-settings", test_refuses_wrong_settings);
  r = g_test_run ();
  for (guint i = 0; i < 3; i++) {
    for (guint au = 0; au < N_AUS; au++)
      g_free (reference[i][au]);
  }
  avc_free (&avc);
  return r;
}
