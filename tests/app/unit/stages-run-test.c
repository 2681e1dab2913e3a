// SPDX-License-Identifier: LGPL-2.1-or-later

// Runs the launch lines of stages on real media.

#include "base/features.h"
#include "cli/explain.h"
#include "stages/choice.h"
#include "stages/stage_elements.h"

#include <glib/gstdio.h>
#include <gst/gst.h>
#include <string.h>

#define CLIP_FRAMES 132

// The buffers that passed one element.
typedef struct {
  GArray *times;  // of GstClockTime: running times, in the order of arrival
  GArray *stamps; // of guint32: RTP timestamps, one for each frame
  GstCaps *caps;
  GstSegment segment;
} Seen;

static Seen *
seen_new (void)
{
  Seen *self = g_new0 (Seen, 1);

  self->times = g_array_new (FALSE, FALSE, sizeof (GstClockTime));
  self->stamps = g_array_new (FALSE, FALSE, sizeof (guint32));
  return self;
}

static void
seen_free (Seen *self)
{
  g_array_unref (self->times);
  g_array_unref (self->stamps);
  gst_clear_caps (&self->caps);
  g_free (self);
}

static void
see_buffer (Seen *self, GstBuffer *buffer)
{
  GstClockTime time =
      gst_segment_to_running_time (&self->segment, GST_FORMAT_TIME, GST_BUFFER_PTS (buffer));
  guint8 head[8];
  guint32 stamp;

  if (!gst_structure_has_name (gst_caps_get_structure (self->caps, 0), "application/x-rtp")) {
    g_array_append_val (self->times, time);
    return;
  }
  g_assert_cmpuint (gst_buffer_extract (buffer, 0, head, 8), ==, 8);
  stamp = GST_READ_UINT32_BE (head + 4);
  if (self->stamps->len && g_array_index (self->stamps, guint32, self->stamps->len - 1) == stamp)
    return;
  g_array_append_val (self->times, time);
  g_array_append_val (self->stamps, stamp);
}

static GstPadProbeReturn
see (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  Seen *self = data;
  GstCaps *caps;

  if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
    see_buffer (self, GST_PAD_PROBE_INFO_BUFFER (info));
  } else if (info->type & GST_PAD_PROBE_TYPE_BUFFER_LIST) {
    GstBufferList *list = GST_PAD_PROBE_INFO_BUFFER_LIST (info);

    for (guint i = 0; i < gst_buffer_list_length (list); i++)
      see_buffer (self, gst_buffer_list_get (list, i));
  } else if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) == GST_EVENT_CAPS) {
    gst_event_parse_caps (GST_PAD_PROBE_INFO_EVENT (info), &caps);
    gst_caps_replace (&self->caps, caps);
  } else if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) == GST_EVENT_SEGMENT) {
    gst_event_copy_segment (GST_PAD_PROBE_INFO_EVENT (info), &self->segment);
  }
  return GST_PAD_PROBE_OK;
}

// Runs a pipeline to its end. Returns the buffers that passed its elements "a", "b", ...
static void
run_pipeline (GstElement *pipeline, Seen **seen, guint n)
{
  GError *error = NULL;
  GstMessage *message;
  GstBus *bus;

  for (guint i = 0; i < n; i++) {
    const gchar name[] = { (gchar) ('a' + i), '\0' };
    GstElement *element = gst_bin_get_by_name (GST_BIN (pipeline), name);
    GstPad *pad = gst_element_get_static_pad (element, "sink");

    seen[i] = seen_new ();
    gst_pad_add_probe (pad,
        GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST
            | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM,
        see, seen[i], NULL);
    gst_object_unref (pad);
    gst_object_unref (element);
  }
  bus = gst_element_get_bus (pipeline);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (bus, 120 * GST_SECOND, GST_MESSAGE_ERROR | GST_MESSAGE_EOS);
  g_assert_nonnull (message);
  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR)
    gst_message_parse_error (message, &error, NULL);
  g_assert_no_error (error);
  gst_message_unref (message);
  gst_object_unref (bus);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (pipeline);
}

static void
run (const gchar *line, Seen **seen, guint n)
{
  GError *error = NULL;
  GstElement *pipeline = gst_parse_launch_full (line, NULL, GST_PARSE_FLAG_FATAL_ERRORS, &error);

  g_assert_no_error (error);
  run_pipeline (pipeline, seen, n);
}

static StageSet *
load (const gchar *own)
{
  GError *error = NULL;
  StageSet *set = stage_set_load_usual (own, &error);

  g_assert_no_error (error);
  return set;
}

static gchar *
source (void)
{
  return g_strdup_printf ("filesrc location=%s/bigbuckbunny.mp4 ! parsebin ! video/x-h264 ! "
                          "identity name=a ! rtph264pay config-interval=-1 timestamp-offset=0",
      g_getenv ("WEIR_DATA"));
}

static gchar *
launch (Stage *stage, const gchar *codec)
{
  GError *error = NULL;
  gchar *text;

  g_assert_true (stage_check_elements (stage, codec, &error));
  g_assert_no_error (error);
  text = stage_dup_launch (stage, codec, &error);
  g_assert_no_error (error);
  return text;
}

static gchar *
launch_of (StageSet *set, const gchar *name, const gchar *codec)
{
  Stage *stage = stage_new (set, name, NULL);
  gchar *text = launch (stage, codec);

  stage_unref (stage);
  return text;
}

static void
assert_same_times (const Seen *one, const Seen *other)
{
  g_assert_cmpuint (one->times->len, ==, CLIP_FRAMES);
  g_assert_cmpuint (other->times->len, ==, CLIP_FRAMES);
  for (guint i = 0; i < CLIP_FRAMES; i++)
    g_assert_cmpuint (g_array_index (one->times, GstClockTime, i), ==,
        g_array_index (other->times, GstClockTime, i));
}

static void
assert_stamps_are_times (const Seen *seen)
{
  g_assert_cmpuint (seen->stamps->len, ==, CLIP_FRAMES);
  for (guint i = 0; i < CLIP_FRAMES; i++)
    g_assert_cmpuint (g_array_index (seen->stamps, guint32, i), ==,
        (guint32) gst_util_uint64_scale_int (
            g_array_index (seen->times, GstClockTime, i), 90000, GST_SECOND));
}

static void
assert_size (const Seen *seen, gint width, gint height)
{
  const GstStructure *s = gst_caps_get_structure (seen->caps, 0);
  gint w = 0, h = 0;

  gst_structure_get_int (s, "width", &w);
  gst_structure_get_int (s, "height", &h);
  g_assert_cmpint (w, ==, width);
  g_assert_cmpint (h, ==, height);
}

static void
transcode_with (const gchar *encoder)
{
  StageSet *set = load (NULL);
  Stage *stage = stage_new (set, "transcode", NULL);
  gchar *line, *from = source (), *decode = launch_of (set, "decode", "H264"), *transcode;
  Seen *seen[4];

  g_assert_null (stage_assign (stage, "encoder", encoder));
  g_assert_null (stage_assign (stage, "size", "320x180"));
  g_assert_null (stage_assign (stage, "rate", "300k"));
  transcode = launch (stage, NULL);
  line = g_strdup_printf ("%s ! %s ! identity name=b ! %s ! identity name=c ! %s ! "
                          "fakesink name=d sync=false",
      from, decode, transcode, decode);
  run (line, seen, G_N_ELEMENTS (seen));

  assert_same_times (seen[0], seen[1]); // the decoder keeps them
  assert_same_times (seen[1], seen[2]); // so does the encoder
  assert_stamps_are_times (seen[2]);
  assert_same_times (seen[2], seen[3]);
  assert_size (seen[1], 1280, 720);
  assert_size (seen[3], 320, 180);

  for (guint i = 0; i < G_N_ELEMENTS (seen); i++)
    seen_free (seen[i]);
  g_free (transcode);
  g_free (decode);
  g_free (from);
  g_free (line);
  stage_unref (stage);
  stage_set_unref (set);
}

static gboolean
skip_without (const gchar *element)
{
  gchar *missing = stage_elements_find_missing (element);

  if (missing)
    g_test_skip (missing);
  g_free (missing);
  return missing != NULL;
}

static gboolean
skip_without_encoder (void)
{
  gchar *svcenc = stage_elements_find_missing ("svcenc");
  gchar *x264enc = stage_elements_find_missing ("x264enc");
  gboolean skip = svcenc && x264enc;

  if (skip)
    g_test_skip ("neither svcenc nor x264enc");
  g_free (svcenc);
  g_free (x264enc);
  return skip;
}

static void
openh264_scales_and_keeps_the_timestamps (void)
{
  if (!skip_without ("svcenc"))
    transcode_with ("openh264");
}

static void
x264_scales_and_keeps_the_timestamps (void)
{
  if (!skip_without ("x264enc"))
    transcode_with ("x264");
}

// The decoded frames have no frame rate, as from a camera that does not give one.
static void
a_transcoder_works_without_a_frame_rate (void)
{
  static const gchar *const encoders[] = { "openh264", "x264" };
  StageSet *set = load (NULL);

  for (guint i = 0; i < G_N_ELEMENTS (encoders); i++) {
    Stage *stage = stage_new (set, "transcode", NULL);
    GError *error = NULL;
    gchar *text, *line;
    Seen *seen;

    g_assert_null (stage_assign (stage, "encoder", encoders[i]));
    if (stage_check_elements (stage, NULL, &error)) {
      text = launch (stage, NULL);
      line = g_strdup_printf ("videotestsrc num-buffers=30 ! video/x-raw,framerate=10/1 ! "
                              "capssetter caps=video/x-raw,framerate=0/1 ! %s ! "
                              "fakesink name=a sync=false",
          text);
      run (line, &seen, 1);
      g_assert_cmpuint (seen->stamps->len, ==, 30);
      for (guint n = 0; n < 30; n++)
        g_assert_cmpuint (g_array_index (seen->stamps, guint32, n), ==, n * 9000);
      seen_free (seen);
      g_free (line);
      g_free (text);
    }
    g_clear_error (&error);
    stage_unref (stage);
  }
  stage_set_unref (set);
}

// ---- missing elements; each test runs in a process of its own, which has its own registry ----

static void
remove_element (const gchar *name)
{
  GstRegistry *registry = gst_registry_get ();
  GstPluginFeature *feature = gst_registry_lookup_feature (registry, name);

  if (!feature)
    return;
  gst_registry_remove_feature (registry, feature);
  gst_object_unref (feature);
}

static void
openh264dec_alone_is_enough (void)
{
  StageSet *set;
  gchar *from, *decode, *line;
  Seen *seen[2];

  if (skip_without ("openh264dec"))
    return;
  if (!g_test_subprocess ()) {
    g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_passed ();
    return;
  }
  remove_element ("avdec_h264");
  set = load (NULL);
  from = source ();
  decode = launch_of (set, "decode", "H264");
  g_assert_nonnull (strstr (decode, "openh264dec"));
  line = g_strdup_printf ("%s ! %s ! fakesink name=b sync=false", from, decode);
  run (line, seen, 2);
  assert_same_times (seen[0], seen[1]);
  seen_free (seen[0]);
  seen_free (seen[1]);
  g_free (line);
  g_free (decode);
  g_free (from);
  stage_set_unref (set);
}

static void
a_missing_element_is_named_with_its_package (void)
{
  const gchar *advice;
  GPtrArray *stages;
  StageSet *set;
  Stage *stage;
  GError *error = NULL;

  if (!g_test_subprocess ()) {
    g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_passed ();
    return;
  }
  remove_element ("x264enc");
  set = load (NULL);
  stage = stage_new (set, "transcode", NULL);
  g_assert_null (stage_assign (stage, "encoder", "x264"));
  g_assert_false (stage_check_elements (stage, NULL, &error));
  g_assert_cmpstr (error->message, ==,
      "stage transcode: GStreamer has no element \"x264enc\"; on Debian install "
      "gstreamer1.0-plugins-ugly");
  g_clear_error (&error);

  // A mount that needs it is refused.
  stages = g_ptr_array_new_with_free_func ((GDestroyNotify) stage_unref);
  g_ptr_array_add (stages, stage_new (set, "pull", NULL));
  g_ptr_array_add (stages, stage);
  g_assert_false (choice_check (set, stages, NULL, NULL, &error));
  g_assert_nonnull (strstr (error->message, "gstreamer1.0-plugins-ugly"));
  g_clear_error (&error);
  g_ptr_array_unref (stages);

  // The first installed encoder is the default. If none is installed, the first one is reported as
  // missing.
  remove_element ("svcenc");
  stage = stage_new (set, "transcode", NULL);
  g_assert_cmpstr (stage_get_value (stage, "encoder"), ==, "openh264");
  g_assert_false (stage_check_elements (stage, NULL, &error));
  advice = feature_get_lack (FEATURE_OPENH264);
  g_assert_nonnull (strstr (error->message, "GStreamer has no element \"svcenc\"; "));
  g_assert_nonnull (strstr (error->message, advice ? advice : "it belongs to Weir"));
  g_clear_error (&error);
  stage_unref (stage);
  stage_set_unref (set);
}

static void
the_first_installed_encoder_is_the_default (void)
{
  StageSet *set;
  Stage *stage;

  if (skip_without ("x264enc"))
    return;
  if (!g_test_subprocess ()) {
    g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_passed ();
    return;
  }
  remove_element ("svcenc");
  set = load (NULL);
  stage = stage_new (set, "transcode", NULL);
  g_assert_cmpstr (stage_get_value (stage, "encoder"), ==, "x264");
  stage_unref (stage);
  stage_set_unref (set);
}

static void
an_unknown_codec_is_refused (void)
{
  StageSet *set = load (NULL);
  Stage *stage = stage_new (set, "decode", NULL);
  GError *error = NULL;

  g_assert_null (stage_dup_launch (stage, "H266", &error));
  g_assert_cmpstr (
      error->message, ==, "stage decode: takes H264, H265, VP8, VP9, AV1, JPEG, not H266");
  g_clear_error (&error);
  g_assert_null (stage_dup_launch (stage, NULL, &error));
  g_clear_error (&error);
  stage_unref (stage);
  stage = stage_new (set, "pull", NULL);
  g_assert_null (stage_dup_launch (stage, NULL, &error));
  g_clear_error (&error);
  g_assert_true (stage_check_elements (stage, NULL, &error));
  stage_unref (stage);
  stage_set_unref (set);
}

/* Each codec that decode takes and this machine can encode */

static void
decode_accepts_its_documented_codecs (void)
{
  static const struct {
    const gchar *codec, *encoder;
  } cases[] = {
    { "H264", "x264enc tune=zerolatency ! rtph264pay config-interval=-1" },
    { "H265", "x265enc tune=zerolatency ! rtph265pay config-interval=-1" },
    { "VP8", "vp8enc deadline=1 ! rtpvp8pay" },
    { "VP9", "vp9enc deadline=1 cpu-used=8 ! rtpvp9pay" },
    { "AV1", "av1enc usage-profile=realtime cpu-used=8 ! av1parse ! rtpav1pay" },
    { "JPEG", "jpegenc ! rtpjpegpay" },
  };
  StageSet *set = load (NULL);
  guint n = 0;

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    Stage *stage = stage_new (set, "decode", NULL);
    gchar *missing = stage_elements_find_missing (cases[i].encoder);
    GError *error = NULL;

    if (missing || !stage_check_elements (stage, cases[i].codec, &error)) {
      g_test_message ("%s: %s", cases[i].codec, missing ? missing : error->message);
      g_clear_error (&error);
    } else {
      gchar *decode = launch (stage, cases[i].codec);
      gchar *line = g_strdup_printf ("videotestsrc num-buffers=10 ! "
                                     "video/x-raw,format=I420,width=320,height=240 ! %s ! %s ! "
                                     "fakesink name=a sync=false",
          cases[i].encoder, decode);
      Seen *seen;

      run (line, &seen, 1);
      g_test_message ("%s: %u frames", cases[i].codec, seen->times->len);
      g_assert_cmpuint (seen->times->len, ==, 10);
      assert_size (seen, 320, 240);
      seen_free (seen);
      g_free (decode);
      g_free (line);
      n++;
    }
    g_free (missing);
    stage_unref (stage);
  }
  g_assert_cmpuint (n, >=, 2);
  stage_set_unref (set);
}

// The payloader puts parameter sets before each slice of a keyframe.
static void
a_keyframe_of_several_slices_is_one_picture (void)
{
  StageSet *set;
  gchar *decode, *line;
  Seen *seen;

  if (skip_without ("openh264enc"))
    return;
  set = load (NULL);
  decode = launch_of (set, "decode", "H264");
  line = g_strdup_printf ("videotestsrc num-buffers=10 ! "
                          "video/x-raw,format=I420,width=320,height=240 ! openh264enc "
                          "slice-mode=n-slices num-slices=2 ! h264parse ! rtph264pay "
                          "config-interval=-1 ! %s ! fakesink name=a sync=false",
      decode);
  run (line, &seen, 1);
  g_assert_cmpuint (seen->times->len, ==, 10);
  seen_free (seen);
  g_free (line);
  g_free (decode);
  stage_set_unref (set);
}

/* Restamping */

static void
restamp_repairs_a_jump (void)
{
  StageSet *set = load (NULL);
  gchar *text = launch_of (set, "restamp", "VP8"), *line;
  Seen *seen[2];

  // Each payloader has its own SSRC and timestamps; concat joins them into one stream.
  line = g_strdup_printf ("concat name=c adjust-base=false ! identity name=a ! %s ! "
                          "fakesink name=b sync=false "
                          "videotestsrc num-buffers=5 ! vp8enc ! "
                          "rtpvp8pay ssrc=1 seqnum-offset=9 timestamp-offset=4000000000 ! c. "
                          "videotestsrc num-buffers=5 ! vp8enc ! "
                          "rtpvp8pay ssrc=1 seqnum-offset=1 timestamp-offset=1000 ! c.",
      text);
  run (line, seen, 2);
  g_assert_cmpuint (seen[1]->stamps->len, ==, seen[0]->stamps->len);
  g_assert_cmpuint (seen[1]->stamps->len, ==, 10);
  for (guint i = 1; i < 10; i++) {
    guint32 step = g_array_index (seen[1]->stamps, guint32, i)
                   - g_array_index (seen[1]->stamps, guint32, i - 1);

    g_assert_cmpuint (step, >, 0);
    g_assert_cmpuint (step, <, 10 * 90000);
  }
  seen_free (seen[0]);
  seen_free (seen[1]);
  g_free (line);
  g_free (text);
  stage_set_unref (set);
}

// ---- the output of --explain ----

// Runs a line as a shell passes it to gst-launch-1.0.
static void
run_as_typed (const gchar *line, Seen **seen, guint n)
{
  GError *error = NULL;
  gchar **argv;
  GstElement *pipeline;

  g_assert_true (g_shell_parse_argv (line, NULL, &argv, &error));
  g_assert_cmpstr (argv[0], ==, "gst-launch-1.0");
  pipeline = gst_parse_launchv ((const gchar **) argv + 1, &error);
  g_assert_no_error (error);
  g_strfreev (argv);
  run_pipeline (pipeline, seen, n);
}

static void
run_explained (void)
{
  static const gchar *const rate[] = { "rate", NULL };
  StageSet *set = load (NULL);
  GPtrArray *stages = g_ptr_array_new_with_free_func ((GDestroyNotify) stage_unref), *chain;
  GHashTable *choices = g_hash_table_new (g_str_hash, g_str_equal);
  gchar *path = g_build_filename (g_getenv ("WEIR_DATA"), "bigbuckbunny.mp4", NULL);
  PullConfig pull = { .uri = g_filename_to_uri (path, NULL, NULL) };
  GString *line;
  gchar *text;
  Seen *seen;

  g_ptr_array_add (stages, stage_new (set, "pull", NULL));
  g_hash_table_insert (choices, (gpointer) "transcode", (gpointer) rate);
  chain = choice_make_chain (set, stages, choices, "rate=300k", NULL);
  text = explain_chain ("/cam?rate=300k", &pull, chain);
  g_assert_true (g_str_has_prefix (text, "# /cam?rate=300k\n# pull("));
  g_assert_nonnull (strstr (text, "\n# decode: rtph264depay ! "));
  g_assert_nonnull (strstr (text, "\n# transcode: videoconvertscale "));

  line = g_string_new (strstr (text, "\ngst-launch-1.0 ") + 1);
  g_assert_cmpuint (
      g_string_replace (line, "fanoutsink clients=127.0.0.1:5004", "fakesink name=a sync=false", 0),
      ==, 1);
  run_as_typed (line->str, &seen, 1);
  assert_stamps_are_times (seen);

  seen_free (seen);
  g_string_free (line, TRUE);
  g_free (text);
  g_free (pull.uri);
  g_free (path);
  g_ptr_array_unref (chain);
  g_ptr_array_unref (stages);
  g_hash_table_unref (choices);
  stage_set_unref (set);
}

static void
explained_pipelines_run (void)
{
  if (!skip_without_encoder ())
    run_explained ();
}

/* The stage in the documentation */

static gchar *
dup_sample (void)
{
  gchar *path = g_build_filename (g_getenv ("WEIR_DATA"), "..", "..", "docs", "pipelines.md", NULL);
  gchar *text, *start, *sample;

  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  start = strstr (text, "`colours.launch`");
  g_assert_nonnull (start);
  start = strstr (start, "```\n---\n");
  g_assert_nonnull (start);
  start += strlen ("```\n");
  sample = g_strndup (start, (gsize) (strstr (start, "\n```") + 1 - start));
  g_free (text);
  g_free (path);
  return sample;
}

static void
run_sample (void)
{
  gchar *own = g_dir_make_tmp ("stages-XXXXXX", NULL), *sample = dup_sample ();
  gchar *path = g_build_filename (own, "colours.launch", NULL), *from = source (), *part;
  GPtrArray *stages = g_ptr_array_new_with_free_func ((GDestroyNotify) stage_unref), *chain;
  GHashTable *choices = g_hash_table_new (g_str_hash, g_str_equal);
  static const gchar *const colours[] = { "strength", NULL };
  GError *error = NULL;
  GString *line = g_string_new (from);
  StageSet *set;
  Seen *seen[2];

  g_assert_true (g_file_set_contents (path, sample, -1, NULL));
  set = load (own);
  g_ptr_array_add (stages, stage_new (set, "pull", NULL));
  g_ptr_array_add (stages, stage_new (set, "colours", NULL));
  g_ptr_array_add (stages, stage_new (set, "transcode", NULL));
  g_hash_table_insert (choices, (gpointer) "colours", (gpointer) colours);
  g_assert_true (choice_check (set, stages, choices, NULL, &error));
  g_assert_no_error (error);
  chain = choice_make_chain (set, stages, choices, "strength=0", &error);
  g_assert_no_error (error);
  g_assert_cmpuint (chain->len, ==, 4);
  for (guint i = 1; i < chain->len; i++) {
    part = launch (g_ptr_array_index (chain, i), choice_get_codec (chain, i, STAGE_VIDEO, "H264"));
    g_string_append_printf (line, " ! %s", part);
    g_free (part);
  }
  g_assert_nonnull (strstr (line->str, " ! videobalance saturation=0 ! "));
  g_string_append (line, " ! fakesink name=b sync=false");
  run (line->str, seen, 2);
  assert_same_times (seen[0], seen[1]);
  assert_stamps_are_times (seen[1]);

  seen_free (seen[0]);
  seen_free (seen[1]);
  g_string_free (line, TRUE);
  g_ptr_array_unref (chain);
  g_ptr_array_unref (stages);
  g_hash_table_unref (choices);
  stage_set_unref (set);
  g_unlink (path);
  g_rmdir (own);
  g_free (from);
  g_free (path);
  g_free (sample);
  g_free (own);
}

static void
the_stage_in_the_documentation_runs (void)
{
  if (!skip_without_encoder ())
    run_sample ();
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func (
      "/stages/openh264-scales-and-keeps-the-timestamps", openh264_scales_and_keeps_the_timestamps);
  g_test_add_func (
      "/stages/x264-scales-and-keeps-the-timestamps", x264_scales_and_keeps_the_timestamps);
  g_test_add_func (
      "/stages/a-transcoder-works-without-a-frame-rate", a_transcoder_works_without_a_frame_rate);
  g_test_add_func ("/stages/openh264dec-alone-is-enough", openh264dec_alone_is_enough);
  g_test_add_func ("/stages/a-missing-element-is-named-with-its-package",
      a_missing_element_is_named_with_its_package);
  g_test_add_func ("/stages/the-first-installed-encoder-is-the-default",
      the_first_installed_encoder_is_the_default);
  g_test_add_func ("/stages/an-unknown-codec-is-refused", an_unknown_codec_is_refused);
  g_test_add_func (
      "/stages/decode-accepts-its-documented-codecs", decode_accepts_its_documented_codecs);
  g_test_add_func ("/stages/a-keyframe-of-several-slices-is-one-picture",
      a_keyframe_of_several_slices_is_one_picture);
  g_test_add_func ("/stages/restamp-repairs-a-jump", restamp_repairs_a_jump);
  g_test_add_func ("/stages/explained-pipelines-run", explained_pipelines_run);
  g_test_add_func (
      "/stages/the-stage-in-the-documentation-runs", the_stage_in_the_documentation_runs);
  return g_test_run ();
}
