// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests svclayerfilter between two pads with a real scalable stream, as RTP and as access units.
#include <gst/check/gstharness.h>
#include <gst/gst.h>

#include "avc.h"
#include "layers/layermeta.h"

#define RTP_CAPS                                                                                   \
  "application/x-rtp,media=video,clock-rate=90000,encoding-name=H264,payload=96,"                  \
  "packetization-mode=(string)1"
#define FRAME (GST_SECOND / 30)

static Avc avc;

static GstHarness *
make (const gchar *properties, const gchar *caps)
{
  gchar *line = g_strdup_printf ("svclayerfilter %s", properties);
  GstHarness *h = gst_harness_new_parse (line);

  gst_harness_set_src_caps_str (h, caps);
  g_free (line);
  return h;
}

static void
set (GstHarness *h, const gchar *name, const gchar *value)
{
  GstElement *filter = gst_harness_find_element (h, "svclayerfilter");

  gst_util_set_object_arg (G_OBJECT (filter), name, value);
  gst_object_unref (filter);
}

static GstStructure *
stats_of (GstHarness *h)
{
  GstElement *filter = gst_harness_find_element (h, "svclayerfilter");
  GstStructure *stats;

  g_object_get (filter, "stats", &stats, NULL);
  gst_object_unref (filter);
  return stats;
}

static guint64
stat_of (GstHarness *h, const gchar *name)
{
  GstStructure *stats = stats_of (h);
  guint64 value = G_MAXUINT64;

  g_assert_true (gst_structure_get_uint64 (stats, name, &value));
  gst_structure_free (stats);
  return value;
}

// Every buffer pushed must have been counted once.
static void
check_sums (GstHarness *h)
{
  g_assert_cmpuint (stat_of (h, "in"), ==,
      stat_of (h, "out") + stat_of (h, "left-out") + stat_of (h, "unfit") + stat_of (h, "late")
          + stat_of (h, "bad") + stat_of (h, "flushed"));
  g_assert_cmpuint (
      stat_of (h, "out") + stat_of (h, "put-in"), ==, gst_harness_buffers_received (h));
}

static GstBuffer *
packet_buffer (const AvcPacket *packet)
{
  GstBuffer *buffer = gst_buffer_new_memdup (packet->data, packet->len);
  guint32 ts = GST_READ_UINT32_BE (packet->data + 4);

  GST_BUFFER_PTS (buffer) = (ts - 1000) / 3000 * FRAME;
  return buffer;
}

static void
push_packets (GstHarness *h, const AvcRtp *rtp)
{
  for (size_t i = 0; i < rtp->n; i++)
    g_assert_cmpint (gst_harness_push (h, packet_buffer (&rtp->packets[i])), ==, GST_FLOW_OK);
}

static GstStructure *
caps_of (GstHarness *h)
{
  GstCaps *caps = gst_pad_get_current_caps (h->sinkpad);
  GstStructure *s;

  g_assert_nonnull (caps);
  s = gst_structure_copy (gst_caps_get_structure (caps, 0));
  gst_caps_unref (caps);
  return s;
}

/* RTP */

static void
test_rtp_is_filtered (void)
{
  AvcRtp rtp = avc_packetize (&avc, FALSE, 65500);
  GstHarness *h = make ("max-spatial=1 max-temporal=1", RTP_CAPS);
  GstBuffer *buffer;
  guint n = 0, markers = 0;
  gint seq = -1;
  GstStructure *caps;

  push_packets (h, &rtp);
  caps = caps_of (h);
  g_assert_true (g_str_has_prefix (gst_structure_get_string (caps, "profile-level-id"), "53"));
  gst_structure_free (caps);
  while ((buffer = gst_harness_try_pull (h))) {
    guint8 header[12];
    guint32 ts;

    gst_buffer_extract (buffer, 0, header, 12);
    ts = GST_READ_UINT32_BE (header + 4);
    g_assert_cmpuint (GST_BUFFER_PTS (buffer), ==, (ts - 1000) / 3000 * FRAME);
    g_assert_true (seq < 0 || GST_READ_UINT16_BE (header + 2) == ((seq + 1) & 0xffff));
    seq = GST_READ_UINT16_BE (header + 2);
    markers += header[1] >> 7;
    gst_buffer_unref (buffer);
    n++;
  }
  g_assert_cmpuint (markers, ==, 60);
  g_assert_cmpuint (n, ==, stat_of (h, "out"));
  g_assert_cmpuint (stat_of (h, "frames-in"), ==, 120);
  g_assert_cmpuint (stat_of (h, "frames-out"), ==, 60);
  check_sums (h);
  gst_harness_teardown (h);
  free (rtp.packets);
}

static guint n_lists, n_in_lists;

static GstPadProbeReturn
count_list (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  n_lists++;
  n_in_lists += gst_buffer_list_length (GST_PAD_PROBE_INFO_BUFFER_LIST (info));
  return GST_PAD_PROBE_OK;
}

// A frame that arrives as a list leaves as a list, and a shared list is not modified.
static void
test_lists_stay_lists (void)
{
  AvcRtp rtp = avc_packetize (&avc, FALSE, 1);
  GstHarness *h = make ("max-spatial=1", RTP_CAPS);
  GstElement *filter = gst_harness_find_element (h, "svclayerfilter");
  GstPad *sink = gst_element_get_static_pad (filter, "sink");
  GstPad *src = gst_element_get_static_pad (filter, "src");
  GstBufferList *list = gst_buffer_list_new ();

  n_lists = n_in_lists = 0;
  gst_pad_add_probe (src, GST_PAD_PROBE_TYPE_BUFFER_LIST, count_list, NULL, NULL);
  for (size_t i = 0; i < rtp.n; i++) {
    gst_buffer_list_add (list, packet_buffer (&rtp.packets[i]));
    if (!(rtp.packets[i].data[1] >> 7))
      continue;
    gst_buffer_list_ref (list);
    g_assert_cmpint (gst_pad_chain_list (sink, list), ==, GST_FLOW_OK);
    for (guint j = 0; j < gst_buffer_list_length (list); j++) {
      GstBuffer *kept = gst_buffer_list_get (list, j);
      const AvcPacket *was = &rtp.packets[i + 1 - gst_buffer_list_length (list) + j];

      g_assert_cmpint (gst_buffer_memcmp (kept, 0, was->data, was->len), ==, 0);
    }
    gst_buffer_list_unref (list);
    list = gst_buffer_list_new ();
  }
  gst_buffer_list_unref (list);
  g_assert_cmpuint (n_lists, ==, 120);
  g_assert_cmpuint (n_in_lists, ==, gst_harness_buffers_received (h));
  check_sums (h);
  gst_object_unref (sink);
  gst_object_unref (src);
  gst_object_unref (filter);
  gst_harness_teardown (h);
  free (rtp.packets);
}

static void
test_bad_rtp_is_dropped (void)
{
  static const guint8 interleaved[][18] = {
    { 0x80, 0xe0, 0, 9, 0, 0, 0x30, 0, 1, 2, 3, 4, 0x79, 0, 0, 0, 1, 0x65 },
    { 0x80, 0xe0, 0, 10, 0, 0, 0x40, 0, 1, 2, 3, 4, 0x7a, 0, 0, 0, 1, 0 },
  };
  GstHarness *h = make ("max-spatial=1", RTP_CAPS);
  GstBus *bus = gst_bus_new ();
  GstMessage *message;
  guint warnings = 0;

  gst_element_set_bus (h->element, bus);
  gst_harness_push (h, gst_buffer_new ());
  gst_harness_push (h, gst_buffer_new_memdup ("nonsense", 8));
  g_assert_cmpuint (stat_of (h, "bad"), ==, 2);
  for (guint i = 0; i < 2; i++)
    gst_harness_push (h, gst_buffer_new_memdup (interleaved[i], 18));
  g_assert_cmpuint (gst_harness_buffers_received (h), ==, 2);
  while ((message = gst_bus_pop (bus))) {
    warnings += GST_MESSAGE_TYPE (message) == GST_MESSAGE_WARNING;
    gst_message_unref (message);
  }
  g_assert_cmpuint (warnings, ==, 1);
  check_sums (h);
  gst_element_set_bus (h->element, NULL);
  gst_object_unref (bus);
  gst_harness_teardown (h);
}

/* Access units */

static void
append (GByteArray *bytes, const AvcNal *nal, gboolean lengths)
{
  guint8 start[4] = { 0, 0, 0, 1 };

  if (lengths)
    GST_WRITE_UINT32_BE (start, nal->len);
  g_byte_array_append (bytes, start, 4);
  g_byte_array_append (bytes, nal->data, (guint) nal->len);
}

static GstBuffer *
au_buffer (guint au, gboolean lengths)
{
  GByteArray *bytes = g_byte_array_new ();
  GstBuffer *buffer;
  gsize len;

  for (size_t i = 0; i < avc.n; i++) {
    if (avc.nals[i].au == au)
      append (bytes, &avc.nals[i], lengths);
  }
  len = bytes->len;
  buffer = gst_buffer_new_wrapped (g_byte_array_free (bytes, FALSE), len);
  GST_BUFFER_PTS (buffer) = au * FRAME;
  GST_BUFFER_DURATION (buffer) = FRAME;
  return buffer;
}

// Returns whether unit `i` belongs to the access unit of these layers. In this stream, parameter
// sets are in the order of the layers.
static gboolean
is_wanted (size_t i, gint spatial)
{
  const AvcNal *nal = &avc.nals[i];
  gint order = 0;

  for (size_t j = i; j-- > 0 && avc.nals[j].au == nal->au;)
    order += avc.nals[j].type == nal->type;
  switch (nal->type) {
    case 8:
      return order <= spatial;
    case 15:
      return order < spatial;
    case 20:
      return nal->spatial <= spatial;
    default:
      return TRUE;
  }
}

static gint
temporal_of (guint au)
{
  static const gint temporal[] = { 0, 2, 1, 2 };
  return temporal[au % 4];
}

static void
check_au (GstBuffer *buffer, guint au, gint spatial, gboolean lengths)
{
  GByteArray *bytes = g_byte_array_new ();

  for (size_t i = 0; i < avc.n; i++) {
    if (avc.nals[i].au == au && is_wanted (i, spatial))
      append (bytes, &avc.nals[i], lengths);
  }
  g_assert_cmpuint (gst_buffer_get_size (buffer), ==, bytes->len);
  g_assert_cmpint (gst_buffer_memcmp (buffer, 0, bytes->data, bytes->len), ==, 0);
  g_assert_cmpuint (GST_BUFFER_PTS (buffer), ==, au * FRAME);
  g_assert_cmpuint (GST_BUFFER_DURATION (buffer), ==, FRAME);
  g_byte_array_unref (bytes);
}

static void
check_aus (const gchar *caps, gboolean lengths)
{
  for (gint spatial = 0; spatial < 3; spatial++) {
    for (gint temporal = 0; temporal < 3; temporal++) {
      gchar *properties = g_strdup_printf ("max-spatial=%d max-temporal=%d", spatial, temporal);
      GstHarness *h = make (properties, caps);
      GstStructure *s;
      gint width;

      for (guint au = 0; au < 120; au++) {
        GstBuffer *buffer;

        gst_harness_push (h, au_buffer (au, lengths));
        buffer = gst_harness_try_pull (h);
        g_assert_true ((buffer == NULL) == (temporal_of (au) > temporal));
        if (buffer)
          check_au (buffer, au, spatial, lengths);
        gst_clear_buffer (&buffer);
      }
      s = caps_of (h);
      g_assert_true (gst_structure_get_int (s, "width", &width));
      g_assert_cmpint (width, ==, 320 << spatial);
      g_assert_cmpstr (gst_structure_get_string (s, "profile"), ==,
          spatial == 0 ? "constrained-baseline" : "scalable-baseline");
      gst_structure_free (s);
      check_sums (h);
      gst_harness_teardown (h);
      g_free (properties);
    }
  }
}

static void
test_byte_stream_is_filtered (void)
{
  check_aus ("video/x-h264,stream-format=byte-stream,alignment=au,width=1,height=1", FALSE);
}

static void
test_avc_is_filtered (void)
{
  check_aus ("video/x-h264,stream-format=avc,alignment=au,codec_data=(buffer)0142c01effe000", TRUE);
}

// Plain H.264 of the middle layer: codec data with one SPS and one PPS, and units of types 1 and 5.
static void
test_output_mode_avc_is_plain_h264 (void)
{
  GstHarness *h = make ("max-spatial=1 output-mode=avc",
      "video/x-h264,stream-format=avc,alignment=au,codec_data=(buffer)0142c01effe000");
  GstBuffer *codec_data = NULL;
  guint8 head[6];
  GstStructure *s;
  gint width;

  for (guint au = 0; au < 10; au++) {
    GstBuffer *buffer;
    guint8 type;

    gst_harness_push (h, au_buffer (au, TRUE));
    buffer = gst_harness_pull (h);
    if (au > 0) {
      gst_buffer_extract (buffer, 4, &type, 1);
      g_assert_cmpuint (type & 31, ==, 1);
    }
    gst_buffer_unref (buffer);
  }
  s = caps_of (h);
  gst_structure_get (
      s, "codec_data", GST_TYPE_BUFFER, &codec_data, "width", G_TYPE_INT, &width, NULL);
  gst_buffer_extract (codec_data, 0, head, 6);
  g_assert_cmpuint (head[1], ==, 66);
  g_assert_cmpuint (head[5], ==, 0xe1);
  g_assert_cmpint (width, ==, 640);
  g_assert_cmpstr (gst_structure_get_string (s, "profile"), ==, "constrained-baseline");
  gst_buffer_unref (codec_data);
  gst_structure_free (s);
  gst_harness_teardown (h);
}

// An access unit with a length beyond its end is dropped as a whole.
static void
test_bad_access_units_are_dropped (void)
{
  GstHarness *h = make ("max-spatial=1",
      "video/x-h264,stream-format=avc,alignment=au,codec_data=(buffer)0142c01effe000");
  GstBuffer *buffer = au_buffer (0, TRUE);

  gst_buffer_resize (buffer, 0, (gssize) gst_buffer_get_size (buffer) - 1);
  gst_harness_push (h, buffer);
  gst_harness_push (h, gst_buffer_new ());
  gst_harness_push (h, gst_buffer_new_memdup ("\0\0\0", 3));
  g_assert_cmpuint (gst_harness_buffers_received (h), ==, 0);
  g_assert_cmpuint (stat_of (h, "bad"), ==, 2);
  gst_harness_push (h, au_buffer (0, TRUE));
  g_assert_cmpuint (gst_harness_buffers_received (h), ==, 1);
  check_sums (h);
  gst_harness_teardown (h);
}

/* Choosing */

static guint
count_key_requests (GstHarness *h)
{
  GstEvent *event;
  guint n = 0;

  while ((event = gst_harness_try_pull_upstream_event (h))) {
    n += gst_event_has_name (event, "GstForceKeyUnit");
    gst_event_unref (event);
  }
  return n;
}

// A change of the spatial layer requests an IDR and waits for it, without a request at every
// picture.
static void
test_a_spatial_change_waits_for_an_idr (void)
{
  GstHarness *h = make ("max-spatial=0", "video/x-h264,stream-format=byte-stream,alignment=au");
  gint width;

  for (guint au = 0; au < 120; au++) {
    GstStructure *s;

    if (au == 10)
      g_assert_cmpuint (count_key_requests (h), ==, 0);
    if (au == 10)
      set (h, "max-spatial", "2");
    gst_harness_push (h, au_buffer (au, FALSE));
    s = caps_of (h);
    gst_structure_get_int (s, "width", &width);
    g_assert_cmpint (width, ==, au < 60 ? 320 : 1280);
    gst_structure_free (s);
  }
  g_assert_cmpuint (count_key_requests (h), ==, 2); // at pictures 10 and 40
  g_assert_cmpuint (stat_of (h, "key-requests"), ==, 2);
  g_assert_cmpuint (gst_harness_buffers_received (h), ==, 120);
  gst_harness_teardown (h);
}

static GstBuffer *
without_sets (GstBuffer *au)
{
  GstMapInfo map;
  gsize slices = 0;

  gst_buffer_map (au, &map, GST_MAP_READ);
  while (!(
      map.data[slices + 2] == 0 && map.data[slices + 3] == 1 && (map.data[slices + 4] & 31) == 14))
    slices++;
  gst_buffer_unmap (au, &map);
  gst_buffer_resize (au, (gssize) slices, -1);
  return au;
}

// A stream may have its parameter sets only once, at its start. When a layer is added later, the
// filter inserts its parameter sets before the layer's IDR.
static void
test_missing_parameter_sets_are_inserted (void)
{
  GstHarness *h = make ("max-spatial=0", "video/x-h264,stream-format=byte-stream,alignment=au");

  for (guint au = 0; au < 120; au++) {
    GstBuffer *buffer = au_buffer (au, FALSE), *out;

    if (au == 10)
      set (h, "max-spatial", "1");
    gst_harness_push (h, au == 60 ? without_sets (buffer) : buffer);
    out = gst_harness_pull (h);
    if (au > 0)
      check_au (out, au, au < 60 ? 0 : 1, FALSE);
    gst_buffer_unref (out);
  }
  gst_harness_teardown (h);
}

// Parameter sets that change in the middle of the stream change the caps before the picture that
// uses them.
static void
test_changed_parameter_sets_change_the_caps (void)
{
  GstHarness *h = make ("max-spatial=0", "video/x-h264,stream-format=byte-stream,alignment=au");
  const gsize level_at = 4 + 3; // of the SPS, the first unit

  for (guint au = 0; au <= 60; au++) {
    GstBuffer *buffer = au_buffer (au, FALSE);
    GstStructure *s;

    if (au == 60)
      gst_buffer_memset (buffer, level_at, 20, 1);
    gst_harness_push (h, buffer);
    s = caps_of (h);
    g_assert_cmpstr (gst_structure_get_string (s, "level"), ==, au < 60 ? "1.3" : "2");
    gst_structure_free (s);
  }
  gst_harness_teardown (h);
}

// Returns the bit rate of a layer in the file, in bits per second.
static guint64
rate_in_file (gint spatial, gint temporal)
{
  guint64 bytes = 0;

  for (size_t i = 0; i < avc.n; i++) {
    const AvcNal *nal = &avc.nals[i];

    if ((nal->type == 1 || nal->type == 5 || nal->type == 20) && nal->spatial == spatial
        && nal->temporal == temporal)
      bytes += nal->len;
  }
  return bytes * 8 / 4;
}

static void
test_layers_are_measured (void)
{
  GstHarness *h = make ("max-spatial=0", "video/x-h264,stream-format=byte-stream,alignment=au");
  GstElement *filter = gst_harness_find_element (h, "svclayerfilter");
  GValue layers = G_VALUE_INIT;

  for (guint au = 0; au < 120; au++)
    gst_harness_push (h, au_buffer (au, FALSE));
  g_value_init (&layers, GST_TYPE_ARRAY);
  g_object_get_property (G_OBJECT (filter), "layers", &layers);
  g_assert_cmpuint (gst_value_array_get_size (&layers), ==, 9);
  for (guint i = 0; i < 9; i++) {
    const GstStructure *s = g_value_get_boxed (gst_value_array_get_value (&layers, i));
    gint spatial = -1, temporal = -1, width = 0;
    guint64 bitrate = 0, in_file;
    gdouble frame_rate = 0;

    gst_structure_get (s, "spatial", G_TYPE_INT, &spatial, "temporal", G_TYPE_INT, &temporal,
        "width", G_TYPE_INT, &width, "bitrate", G_TYPE_UINT64, &bitrate, "frame-rate",
        G_TYPE_DOUBLE, &frame_rate, NULL);
    g_assert_cmpint (spatial, ==, i / 3);
    g_assert_cmpint (temporal, ==, i % 3);
    g_assert_cmpint (width, ==, 320 << spatial);
    in_file = rate_in_file (spatial, temporal);
    g_assert_cmpuint (bitrate, >, in_file * 6 / 10);
    g_assert_cmpuint (bitrate, <, in_file * 14 / 10);
    g_assert_cmpfloat (frame_rate, >, temporal == 2 ? 13 : 6);
    g_assert_cmpfloat (frame_rate, <, temporal == 2 ? 17 : 9);
  }
  g_value_unset (&layers);
  gst_object_unref (filter);
  gst_harness_teardown (h);
}

static void
check_target (const gchar *target, gint spatial, gint temporal, gboolean met)
{
  gchar *properties = g_strdup_printf ("target-bitrate=%s", target);
  GstHarness *h = make (properties, "video/x-h264,stream-format=byte-stream,alignment=au");
  GstStructure *stats;
  gint got_spatial, got_temporal;
  gboolean got_met;

  for (guint au = 0; au < 120; au++)
    gst_harness_push (h, au_buffer (au, FALSE));
  stats = stats_of (h);
  gst_structure_get (stats, "spatial", G_TYPE_INT, &got_spatial, "temporal", G_TYPE_INT,
      &got_temporal, "target-met", G_TYPE_BOOLEAN, &got_met, NULL);
  g_test_message ("%s: %d.%d", target, got_spatial, got_temporal);
  g_assert_cmpint (got_spatial, ==, spatial);
  g_assert_cmpint (got_temporal, ==, temporal);
  g_assert_cmpint (got_met, ==, met);
  gst_structure_free (stats);
  gst_harness_teardown (h);
  g_free (properties);
}

static void
test_target_bitrate_selects_the_layers (void)
{
  check_target ("10000000", 2, 2, TRUE);
  check_target ("300000", 1, 0, TRUE);
  check_target ("125000", 0, 1, TRUE);
  check_target ("1000", 0, 0, FALSE);
}

typedef struct {
  GstElement *filter;
  gint stop;
} Meddler;

static gpointer
meddle (gpointer data)
{
  Meddler *meddler = data;

  for (gint i = 0; !g_atomic_int_get (&meddler->stop); i++) {
    GValue layers = G_VALUE_INIT;
    GstStructure *stats;

    g_object_set (meddler->filter, "max-spatial", i % 4 - 1, "max-temporal", i % 3, "output-mode",
        i / 2 % 3, "target-bitrate", (guint64) (i % 5) * 300000, "switch-mode", i / 7 % 2, NULL);
    g_value_init (&layers, GST_TYPE_ARRAY);
    g_object_get_property (G_OBJECT (meddler->filter), "layers", &layers);
    g_object_get (meddler->filter, "stats", &stats, NULL);
    g_value_unset (&layers);
    gst_structure_free (stats);
  }
  return NULL;
}

// The counters add up whatever properties change meanwhile.
static void
test_properties_may_change_in_another_thread (void)
{
  AvcRtp rtp = avc_packetize (&avc, TRUE, 7);
  GstHarness *h = make ("max-spatial=0", RTP_CAPS);
  Meddler meddler = { gst_harness_find_element (h, "svclayerfilter") };
  GThread *thread = g_thread_new ("meddler", meddle, &meddler);

  push_packets (h, &rtp);
  g_atomic_int_set (&meddler.stop, 1);
  g_thread_join (thread);
  check_sums (h);
  gst_object_unref (meddler.filter);
  gst_harness_teardown (h);
  free (rtp.packets);
}

/* Tags */

static void
test_mode_tag_keeps_all_packets (void)
{
  AvcRtp rtp = avc_packetize (&avc, FALSE, 65500);
  GstHarness *h = make ("mode=tag max-spatial=0", RTP_CAPS);
  guint of_layer[3] = { 0 };

  for (size_t i = 0; i < rtp.n; i++) {
    GstBuffer *buffer, *copy;
    WeirLayerMeta *meta;

    gst_harness_push (h, packet_buffer (&rtp.packets[i]));
    buffer = gst_harness_pull (h); // nothing is held back
    g_assert_cmpint (gst_buffer_memcmp (buffer, 0, rtp.packets[i].data, rtp.packets[i].len), ==, 0);
    copy = gst_buffer_copy (buffer);
    meta = (WeirLayerMeta *) gst_buffer_get_meta (copy, g_type_from_name ("WeirLayerMetaAPI"));
    g_assert_nonnull (meta);
    g_assert_cmpuint (meta->layer.spatial, <, 3);
    of_layer[meta->layer.spatial]++;
    gst_buffer_unref (copy);
    gst_buffer_unref (buffer);
  }
  for (guint i = 0; i < 3; i++)
    g_assert_cmpuint (of_layer[i], >=, 120);
  check_sums (h);
  gst_harness_teardown (h);
  free (rtp.packets);
}

/* Events */

static void
test_events_keep_their_order (void)
{
  GstHarness *h = make ("max-spatial=0", "video/x-h264,stream-format=byte-stream,alignment=au");
  GstEventType expected[] = { GST_EVENT_STREAM_START, GST_EVENT_CAPS, GST_EVENT_SEGMENT,
    GST_EVENT_TAG, GST_EVENT_EOS };

  gst_harness_push_event (h, gst_event_new_tag (gst_tag_list_new (GST_TAG_TITLE, "x", NULL)));
  gst_harness_push (h, au_buffer (0, FALSE));
  gst_harness_push_event (h, gst_event_new_eos ());
  for (guint i = 0; i < G_N_ELEMENTS (expected); i++) {
    GstEvent *event = gst_harness_try_pull_event (h);

    g_assert_nonnull (event);
    g_assert_cmpstr (GST_EVENT_TYPE_NAME (event), ==, gst_event_type_get_name (expected[i]));
    gst_event_unref (event);
  }
  gst_harness_teardown (h);
}

// If the last packet of a frame was lost, the frame's other packets leave at EOS or with the next
// frame.
static void
test_eos_releases_held_packets (void)
{
  AvcRtp rtp = avc_packetize (&avc, FALSE, 1);
  GstHarness *h = make ("max-spatial=2", RTP_CAPS);

  for (size_t i = 0; i < 5; i++)
    gst_harness_push (h, packet_buffer (&rtp.packets[i]));
  g_assert_cmpuint (gst_harness_buffers_received (h), ==, 0);
  gst_harness_push_event (h, gst_event_new_eos ());
  g_assert_cmpuint (gst_harness_buffers_received (h), >, 0);
  check_sums (h);
  gst_harness_teardown (h);
  free (rtp.packets);
}

// After a flush, older data may follow: a seek back, within a cache's window.
static void
test_earlier_data_may_follow_a_flush (void)
{
  AvcRtp rtp = avc_packetize (&avc, FALSE, 1000);
  GstHarness *h = make ("max-spatial=1", RTP_CAPS);
  GstSegment segment;
  guint n_first;

  push_packets (h, &rtp);
  n_first = gst_harness_buffers_received (h);
  gst_harness_push (h, packet_buffer (&rtp.packets[0]));
  gst_harness_push_event (h, gst_event_new_flush_start ());
  gst_harness_push_event (h, gst_event_new_flush_stop (TRUE));
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_push_event (h, gst_event_new_segment (&segment));
  push_packets (h, &rtp);
  g_assert_cmpuint (gst_harness_buffers_received (h), ==, 2 * n_first);
  g_assert_cmpuint (stat_of (h, "late"), ==, 1);
  check_sums (h);
  gst_harness_teardown (h);
  free (rtp.packets);
}

// Repeated caps do not start a new stream, so parameter sets need not be repeated.
static void
test_repeated_caps_keep_the_stream (void)
{
  const gchar *caps = "video/x-h264,stream-format=byte-stream,alignment=au";
  GstHarness *h = make ("max-spatial=1 output-mode=avc", caps);
  GstStructure *stats;
  gint plain;

  for (guint au = 0; au < 120; au++) {
    GstBuffer *buffer = au_buffer (au, FALSE);

    if (au == 30)
      gst_harness_set_src_caps_str (h, caps);
    gst_harness_push (h, au == 60 ? without_sets (buffer) : buffer);
    stats = stats_of (h);
    g_assert_true (gst_structure_get_int (stats, "plain-layer", &plain));
    g_assert_cmpint (plain, ==, 1);
    gst_structure_free (stats);
  }
  check_sums (h);
  gst_harness_teardown (h);
}

// A gap event means that the end of a held frame was lost.
static void
test_a_gap_releases_held_packets (void)
{
  AvcRtp rtp = avc_packetize (&avc, FALSE, 1);
  GstHarness *h = make ("max-spatial=2", RTP_CAPS);

  for (size_t i = 0; i < 5; i++)
    gst_harness_push (h, packet_buffer (&rtp.packets[i]));
  g_assert_cmpuint (gst_harness_buffers_received (h), ==, 0);
  gst_harness_push_event (h, gst_event_new_gap (FRAME, FRAME));
  g_assert_cmpuint (gst_harness_buffers_received (h), >, 0);
  check_sums (h);
  gst_harness_teardown (h);
  free (rtp.packets);
}

// If a stream begins with a gap, downstream gets its caps before the gap, not only with the first
// picture.
static void
test_caps_come_before_a_gap_at_the_start (void)
{
  GstHarness *h = make ("max-spatial=0", "video/x-h264,stream-format=byte-stream,alignment=au");
  GstEventType expected[] = { GST_EVENT_STREAM_START, GST_EVENT_CAPS, GST_EVENT_SEGMENT,
    GST_EVENT_GAP, GST_EVENT_CAPS };
  GstStructure *s;

  gst_harness_push_event (h, gst_event_new_gap (0, FRAME));
  g_assert_cmpuint (gst_harness_events_in_queue (h), ==, 4);
  gst_harness_push (h, au_buffer (0, FALSE));
  for (guint i = 0; i < G_N_ELEMENTS (expected); i++) {
    GstEvent *event = gst_harness_try_pull_event (h);

    g_assert_nonnull (event);
    g_assert_cmpstr (GST_EVENT_TYPE_NAME (event), ==, gst_event_type_get_name (expected[i]));
    gst_event_unref (event);
  }
  s = caps_of (h);
  g_assert_true (gst_structure_has_field (s, "width"));
  gst_structure_free (s);
  gst_harness_teardown (h);
}

int
main (int argc, char **argv)
{
  int r;

  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_assert_true (avc_load (&avc, "svc_3s3t.264"));
  g_test_add_func ("/svclayerfilter/rtp-is-filtered", test_rtp_is_filtered);
  g_test_add_func ("/svclayerfilter/lists-stay-lists", test_lists_stay_lists);
  g_test_add_func ("/svclayerfilter/bad-rtp-is-dropped", test_bad_rtp_is_dropped);
  g_test_add_func ("/svclayerfilter/byte-stream-is-filtered", test_byte_stream_is_filtered);
  g_test_add_func ("/svclayerfilter/avc-is-filtered", test_avc_is_filtered);
  g_test_add_func (
      "/svclayerfilter/output-mode-avc-is-plain-h264", test_output_mode_avc_is_plain_h264);
  g_test_add_func (
      "/svclayerfilter/bad-access-units-are-dropped", test_bad_access_units_are_dropped);
  g_test_add_func (
      "/svclayerfilter/a-spatial-change-waits-for-an-idr", test_a_spatial_change_waits_for_an_idr);
  g_test_add_func ("/svclayerfilter/missing-parameter-sets-are-inserted",
      test_missing_parameter_sets_are_inserted);
  g_test_add_func ("/svclayerfilter/changed-parameter-sets-change-the-caps",
      test_changed_parameter_sets_change_the_caps);
  g_test_add_func ("/svclayerfilter/layers-are-measured", test_layers_are_measured);
  g_test_add_func (
      "/svclayerfilter/target-bitrate-selects-the-layers", test_target_bitrate_selects_the_layers);
  g_test_add_func ("/svclayerfilter/properties-may-change-in-another-thread",
      test_properties_may_change_in_another_thread);
  g_test_add_func ("/svclayerfilter/mode-tag-keeps-all-packets", test_mode_tag_keeps_all_packets);
  g_test_add_func ("/svclayerfilter/events-keep-their-order", test_events_keep_their_order);
  g_test_add_func ("/svclayerfilter/eos-releases-held-packets", test_eos_releases_held_packets);
  g_test_add_func (
      "/svclayerfilter/earlier-data-may-follow-a-flush", test_earlier_data_may_follow_a_flush);
  g_test_add_func (
      "/svclayerfilter/repeated-caps-keep-the-stream", test_repeated_caps_keep_the_stream);
  g_test_add_func ("/svclayerfilter/a-gap-releases-held-packets", test_a_gap_releases_held_packets);
  g_test_add_func ("/svclayerfilter/caps-come-before-a-gap-at-the-start",
      test_caps_come_before_a_gap_at_the_start);
  r = g_test_run ();
  avc_free (&avc);
  return r;
}
