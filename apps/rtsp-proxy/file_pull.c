// SPDX-License-Identifier: LGPL-2.1-or-later

// A clip, payloaded and looped in real time. The timestamps run on over the end of the clip.

#include "pull.h"

#include <gst/app/gstappsink.h>
#include <string.h>

typedef struct _FilePull FilePull;

typedef struct {
  FilePull *pull;
  guint track;
  GstElement *sink;
  gboolean mapped; // the relay knows the track's NTP time
} FileTrack;

struct _FilePull {
  const PullContext *context;
  GstElement *pipeline; // not owned
  GMutex lock;
  GPtrArray *tracks; // of FileTrack
  gboolean begun;
  gint64 start_unix; // ns, at running time 0
};

static const struct {
  const gchar *caps;
  const gchar *payloader; // as launch text
} payloaders[] = {
  { "video/x-h264", "rtph264pay config-interval=-1 aggregate-mode=zero-latency" },
  { "video/x-h265", "rtph265pay config-interval=-1 aggregate-mode=zero-latency" },
  { "video/x-vp8", "rtpvp8pay" },
  { "video/x-vp9", "rtpvp9pay" },
  { "audio/mpeg, mpegversion=(int)4", "rtpmp4gpay" },
  { "audio/mpeg, mpegversion=(int)1", "rtpmpapay" },
  { "audio/x-opus", "rtpopuspay" },
};

static void
pull_free (gpointer data)
{
  FilePull *self = data;

  g_ptr_array_unref (self->tracks);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static void
map_clock (FileTrack *track, GstSample *sample, GstBuffer *packet)
{
  FilePull *self = track->pull;
  GstClockTime time = gst_segment_to_running_time (
      gst_sample_get_segment (sample), GST_FORMAT_TIME, GST_BUFFER_PTS (packet));
  guint8 header[12];
  WeirNtpMap map = { .known = TRUE };

  if (!GST_CLOCK_TIME_IS_VALID (time) || gst_buffer_extract (packet, 0, header, 12) < 12)
    return;
  map.ntp = weir_ntp_from_unix (self->start_unix + (gint64) time);
  map.timestamp = GST_READ_UINT32_BE (header + 4);
  map.ssrc = GST_READ_UINT32_BE (header + 8);
  relay_set_ntp_map (self->context->source, track->track, &map);
  track->mapped = TRUE;
}

static void
take_packet (FileTrack *track, GstSample *sample, GstBuffer *packet)
{
  const PullContext *context = track->pull->context;
  gint64 now = pull_now ();

  if (g_atomic_int_get (&context->cancelled))
    return;
  relay_push (context->source, track->track, gst_buffer_ref (packet), now, RELAY_NO_BASE);
  if (!track->mapped)
    map_clock (track, sample, packet);
  context->callbacks->packet (context->owner, now);
}

static GstFlowReturn
on_sample (GstAppSink *sink, gpointer data)
{
  GstSample *sample = gst_app_sink_pull_sample (sink);
  GstBufferList *list;

  if (!sample)
    return GST_FLOW_OK;
  list = gst_sample_get_buffer_list (sample);
  if (list) {
    for (guint i = 0; i < gst_buffer_list_length (list); i++)
      take_packet (data, sample, gst_buffer_list_get (list, i));
  } else if (gst_sample_get_buffer (sample)) {
    take_packet (data, sample, gst_sample_get_buffer (sample));
  }
  gst_sample_unref (sample);
  return GST_FLOW_OK;
}

static const gchar *
find_payloader (GstCaps *caps)
{
  for (guint i = 0; i < G_N_ELEMENTS (payloaders); i++) {
    GstCaps *match = gst_caps_from_string (payloaders[i].caps);
    gboolean fits = gst_caps_can_intersect (caps, match);

    gst_caps_unref (match);
    if (fits)
      return payloaders[i].payloader;
  }
  return NULL;
}

static void
on_pad_added (GstElement *parsebin, GstPad *pad, gpointer data)
{
  FilePull *self = data;
  // Current caps can come with the first frame only, if parsebin has the parser convert it.
  GstCaps *caps = gst_pad_query_caps (pad, NULL);
  GstAppSinkCallbacks callbacks = { .new_sample = on_sample };
  const gchar *payloader = find_payloader (caps);
  GstElement *branch, *sink;
  GstPad *branch_pad;
  FileTrack *track;
  gchar *launch;

  gst_caps_unref (caps);
  g_mutex_lock (&self->lock);
  launch = payloader && self->tracks->len < RELAY_MAX_TRACKS
               ? g_strdup_printf ("queue max-size-buffers=0 max-size-bytes=4194304 ! %s pt=%u "
                                  "name=pay ! appsink name=sink buffer-list=true max-buffers=64",
                     payloader, 96 + self->tracks->len)
               : g_strdup ("fakesink");
  branch = gst_parse_bin_from_description (launch, TRUE, NULL);
  g_free (launch);
  if (!branch) {
    g_mutex_unlock (&self->lock);
    self->context->callbacks->ended (self->context->owner, "a payloader is missing");
    return;
  }
  sink = gst_bin_get_by_name (GST_BIN (branch), "sink");
  if (sink) {
    track = g_new0 (FileTrack, 1);
    *track = (FileTrack) { self, self->tracks->len, sink, FALSE };
    g_ptr_array_add (self->tracks, track);
    gst_app_sink_set_callbacks (GST_APP_SINK (sink), &callbacks, track, NULL);
    gst_object_unref (sink); // the bin keeps it
  }
  g_mutex_unlock (&self->lock);

  gst_bin_add (GST_BIN (self->pipeline), branch);
  branch_pad = gst_element_get_static_pad (branch, "sink");
  gst_pad_link (pad, branch_pad);
  gst_object_unref (branch_pad);
  gst_element_sync_state_with_parent (branch);
}

// Prerolled: every track's caps are there.
static void
begin (FilePull *self)
{
  const PullContext *context = self->context;
  GPtrArray *caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);

  for (guint i = 0; i < self->tracks->len; i++) {
    FileTrack *track = g_ptr_array_index (self->tracks, i);
    GstPad *pad = gst_element_get_static_pad (track->sink, "sink");
    GstCaps *one = gst_pad_get_current_caps (pad);

    if (one)
      g_ptr_array_add (caps, one);
    gst_object_unref (pad);
  }
  if (caps->len == 0 || caps->len < self->tracks->len) {
    context->callbacks->ended (context->owner, "the file has no track that can be relayed");
  } else {
    self->start_unix = g_get_real_time () * 1000;
    context->callbacks->begun (context->owner, relay_source_begin (context->source, caps));
    // SEGMENT: the end of the clip is announced instead of an EOS, and the next round follows on.
    gst_element_seek (self->pipeline, 1.0, GST_FORMAT_TIME,
        GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_SEGMENT, GST_SEEK_TYPE_SET, 0, GST_SEEK_TYPE_NONE, 0);
    gst_element_set_state (self->pipeline, GST_STATE_PLAYING);
  }
  g_ptr_array_unref (caps);
}

static void
on_message (GstBus *bus, GstMessage *message, gpointer data)
{
  FilePull *self = data;

  switch (GST_MESSAGE_TYPE (message)) {
    case GST_MESSAGE_ASYNC_DONE:
      if (!self->begun) {
        self->begun = TRUE;
        begin (self);
      }
      break;
    case GST_MESSAGE_SEGMENT_DONE:
      gst_element_seek (self->pipeline, 1.0, GST_FORMAT_TIME, GST_SEEK_FLAG_SEGMENT,
          GST_SEEK_TYPE_SET, 0, GST_SEEK_TYPE_NONE, 0);
      break;
    default:
      break;
  }
}

GstElement *
file_pull_new (const PullContext *context, GError **error)
{
  GstElement *pipeline, *source, *parse;
  FilePull *self;
  GstBus *bus;
  gchar *path = g_filename_from_uri (context->config->uri, NULL, error);

  if (!path)
    return NULL;
  if (!g_file_test (path, G_FILE_TEST_IS_REGULAR)) {
    g_set_error (
        error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND, "there is no file %s", path);
    g_free (path);
    return NULL;
  }
  source = gst_element_factory_make ("filesrc", NULL);
  parse = gst_element_factory_make ("parsebin", NULL);
  if (!source || !parse) {
    gst_clear_object (&source);
    gst_clear_object (&parse);
    g_set_error (error, GST_CORE_ERROR, GST_CORE_ERROR_MISSING_PLUGIN,
        "GStreamer's parsebin is missing (Debian: gstreamer1.0-plugins-base)");
    g_free (path);
    return NULL;
  }
  g_object_set (source, "location", path, NULL);
  g_free (path);

  self = g_new0 (FilePull, 1);
  self->context = context;
  self->tracks = g_ptr_array_new_with_free_func (g_free);
  g_mutex_init (&self->lock);
  self->pipeline = pipeline = gst_pipeline_new (NULL);
  g_object_set_data_full (G_OBJECT (pipeline), "pull", self, pull_free);
  gst_bin_add_many (GST_BIN (pipeline), source, parse, NULL);
  gst_element_link (source, parse);
  g_signal_connect (parse, "pad-added", G_CALLBACK (on_pad_added), self);

  // The owner watches the bus on the main context; this only listens along.
  bus = gst_element_get_bus (pipeline);
  g_signal_connect (bus, "message", G_CALLBACK (on_message), self);
  gst_object_unref (bus);
  return pipeline;
}
