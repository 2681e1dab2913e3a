// SPDX-License-Identifier: LGPL-2.1-or-later
// Plays a clip in a loop, payloaded, in real time. Timestamps continue across the end of the clip:
// each round begins where the longest track of the round before ended. A demuxer alone would begin
// the round at the time of the last frame, so the longest track would have that timestamp twice.
//
// tsdemux cannot loop: a transport stream ends, and the upstream starts again.

#include "base/element.h"
#include "base/file_roots.h"
#include "base/file_source.h"
#include "sources/mp4_guard.h"
#include "sources/tracks.h"
#include "sources/ts_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  GstElement *pipeline, *source, *parse; // not owned
  Tracks *tracks;
  gint fd;
  const PullContext *context;
  gboolean begun;
  gint cannot_loop; // atomic

  GMutex lock;
  guint round;       // from 0; this and all below are under the lock
  guint base_round;  // the round of `base`
  GstClockTime base; // running time at which the round begins
  GstClockTime end;  // running time at which the longest track ends
} FilePull;

// A stream of the clip. Only its own thread writes its times.
typedef struct {
  FilePull *pull;
  guint round;
  gint64 shift;            // running time that is sent - the demuxer's
  GstSegment segment;      // as it is passed on
  GstClockTime last, step; // time of the last frame, and the distance between frames
} Stream;

static void
pull_free (gpointer data)
{
  FilePull *self = data;

  tracks_free (self->tracks);
  close (self->fd);
  g_mutex_clear (&self->lock);
  g_free (self);
}

// ---- where rounds meet ----

// Begins a round at the time at which all streams of the round before have ended.
static void
begin_round (Stream *stream, const GstSegment *segment)
{
  FilePull *self = stream->pull;

  g_mutex_lock (&self->lock);
  if (self->base_round != self->round && self->end > self->base) {
    self->base_round = self->round;
    self->base = self->end;
  }
  if (stream->round != self->round && self->round == self->base_round) {
    stream->round = self->round;
    stream->shift = (gint64) self->base - ((gint64) segment->base - (gint64) segment->time);
  }
  g_mutex_unlock (&self->lock);
}

static GstEvent *
shift_segment (Stream *stream, GstEvent *event)
{
  guint32 seqnum = gst_event_get_seqnum (event);

  gst_event_copy_segment (event, &stream->segment);
  if (stream->segment.format != GST_FORMAT_TIME)
    return event;
  begin_round (stream, &stream->segment);
  stream->segment.base = (guint64) ((gint64) stream->segment.base + stream->shift);
  gst_event_unref (event);
  event = gst_event_new_segment (&stream->segment);
  gst_event_set_seqnum (event, seqnum);
  return event;
}

static void
record_end (Stream *stream, GstBuffer *frame)
{
  GstClockTime time = GST_BUFFER_PTS (frame), end;

  if (!GST_CLOCK_TIME_IS_VALID (time) || stream->segment.format != GST_FORMAT_TIME)
    return;
  if (GST_BUFFER_DURATION_IS_VALID (frame))
    stream->step = GST_BUFFER_DURATION (frame);
  else if (GST_CLOCK_TIME_IS_VALID (stream->last) && time > stream->last)
    stream->step = time - stream->last;
  stream->last = time;
  end = MIN (time + stream->step, stream->segment.stop); // a missing stop is the largest value
  end = gst_segment_to_running_time (&stream->segment, GST_FORMAT_TIME, end);
  if (!GST_CLOCK_TIME_IS_VALID (end))
    return;
  g_mutex_lock (&stream->pull->lock);
  stream->pull->end = MAX (stream->pull->end, end);
  g_mutex_unlock (&stream->pull->lock);
}

// Encoders put a frame before the beginning of sound, which is not played. The sink would drop its
// packet, which has a number already.
static gboolean
is_before (const Stream *stream, const GstBuffer *frame)
{
  return stream->segment.format == GST_FORMAT_TIME && GST_BUFFER_PTS_IS_VALID (frame)
         && GST_BUFFER_PTS (frame) < stream->segment.start;
}

static GstPadProbeReturn
on_stream (GstPad *pad, GstPadProbeInfo *info, gpointer stream)
{
  if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
    if (is_before (stream, GST_PAD_PROBE_INFO_BUFFER (info)))
      return GST_PAD_PROBE_DROP;
    record_end (stream, GST_PAD_PROBE_INFO_BUFFER (info));
  } else if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) == GST_EVENT_SEGMENT) {
    info->data = shift_segment (stream, GST_PAD_PROBE_INFO_EVENT (info));
  }
  return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn
wait_for_parsebin (GstPad *pad, GstPadProbeInfo *info, gpointer typefind)
{
  GST_PAD_STREAM_LOCK (GST_PAD (typefind));
  GST_PAD_STREAM_UNLOCK (GST_PAD (typefind));
  return GST_PAD_PROBE_REMOVE;
}

// parsebin drops the errors of an element until it has started it. An element that pulls from the
// file has a thread of its own, and could find before that that the file is broken. The run would
// then wait until its time is over. So the first thing that it reads waits for the thread of
// typefind, which starts it.
static void
hold_first_read (FilePull *self, GstElement *element)
{
  GstPad *pad = gst_element_get_static_pad (element, "sink");
  GstElement *typefind = gst_bin_get_by_name (GST_BIN (self->parse), "typefind");

  if (pad && typefind && element != typefind)
    gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_PULL, wait_for_parsebin,
        gst_element_get_static_pad (typefind, "sink"), gst_object_unref);
  gst_clear_object (&typefind);
  gst_clear_object (&pad);
}

static void
on_element_added (GstBin *pipeline, GstBin *bin, GstElement *element, gpointer data)
{
  FilePull *self = data;
  GstElementFactory *factory = gst_element_get_factory (element);

  if (GST_ELEMENT (bin) == self->parse)
    hold_first_read (self, element);
  if (factory && g_str_equal (GST_OBJECT_NAME (factory), "tsdemux")) {
    ts_guard_add (element);
    g_atomic_int_set (&self->cannot_loop, TRUE);
  }
  if (factory && g_str_equal (GST_OBJECT_NAME (factory), "qtdemux"))
    mp4_guard_add (self->source);
}

static void
on_pad_added (GstElement *parsebin, GstPad *pad, gpointer data)
{
  Stream *stream = g_new0 (Stream, 1);

  stream->pull = data;
  stream->last = GST_CLOCK_TIME_NONE;
  gst_segment_init (&stream->segment, GST_FORMAT_UNDEFINED);
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM,
      on_stream, stream, g_free);
  tracks_add_stream (((FilePull *) data)->tracks, pad);
}

// ---- rounds ----

static void
set_playing (GstElement *pipeline, gpointer unused)
{
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
}

// Begins a clip that plays once. Not in this thread, which brings packets to a relay.
static void
play_once (GstElement *pipeline, guint track)
{
  gst_element_call_async (pipeline, set_playing, NULL, NULL);
}

// Says how long the clip is, and waits to be asked for it.
static void
begin_once (FilePull *self)
{
  const PullContext *context = self->context;
  gint64 length = 0;

  gst_element_query_duration (self->pipeline, GST_FORMAT_TIME, &length);
  context->callbacks->lasts (context->owner, length);
  pull_set_key_handler (context, self->pipeline, play_once);
  tracks_begin (self->tracks);
}

// Called when the pipeline has prerolled: the caps of every track are known.
static void
begin_pull (FilePull *self)
{
  if (self->context->config->once) {
    begin_once (self);
    return;
  }
  if (!tracks_begin (self->tracks))
    return;
  // SEGMENT: GStreamer then announces the end of the clip instead of sending EOS, and the next
  // round follows without a gap.
  if (!g_atomic_int_get (&self->cannot_loop))
    gst_element_seek (self->pipeline, 1.0, GST_FORMAT_TIME,
        GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_SEGMENT, GST_SEEK_TYPE_SET, 0, GST_SEEK_TYPE_NONE, 0);
  gst_element_set_state (self->pipeline, GST_STATE_PLAYING);
}

static void
on_message (GstBus *bus, GstMessage *message, gpointer data)
{
  FilePull *self = data;

  switch (GST_MESSAGE_TYPE (message)) {
    case GST_MESSAGE_ASYNC_DONE:
      if (!self->begun) {
        self->begun = TRUE;
        begin_pull (self);
      }
      break;
    case GST_MESSAGE_SEGMENT_DONE:
      g_mutex_lock (&self->lock);
      self->round++;
      g_mutex_unlock (&self->lock);
      gst_element_seek (self->pipeline, 1.0, GST_FORMAT_TIME, GST_SEEK_FLAG_SEGMENT,
          GST_SEEK_TYPE_SET, 0, GST_SEEK_TYPE_NONE, 0);
      break;
    default:
      break;
  }
}

gint
file_pull_open (const PullConfig *config, GError **error)
{
  const gchar *path = config->path;
  GStatBuf st;
  gint fd;

  if (config->titles) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND, "%s is a folder", path);
    return -1;
  }
  // A pipe must not wait for its writer.
  fd = config->is_limited ? file_roots_open (path, O_RDONLY | O_NONBLOCK)
                          : open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 && errno != ENOENT) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_OPEN_READ, "cannot open %s: %s",
        path, g_strerror (errno));
    return -1;
  }
  if (fd >= 0 && fstat (fd, &st) == 0 && S_ISREG (st.st_mode))
    return fd;
  g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND, "no such file: %s", path);
  if (fd >= 0)
    close (fd);
  return -1;
}

GstElement *
file_pull_new (const PullContext *context, GError **error)
{
  const PullConfig *config = context->config;
  gint fd = config->endpoint.is_open ? config->endpoint.fd : file_pull_open (config, error);
  GstElement *pipeline, *source, *parse;
  FilePull *self;
  GstBus *bus;

  if (fd < 0)
    return NULL;
  parse = element_make ("parsebin", error);
  if (!parse) {
    close (fd);
    return NULL;
  }

  self = g_new0 (FilePull, 1);
  self->context = context;
  self->source = source = file_source_new (fd);
  self->parse = parse;
  self->fd = fd;
  g_mutex_init (&self->lock);
  self->pipeline = pipeline = gst_pipeline_new (NULL);
  self->tracks = tracks_new (context, pipeline, TRACKS_PACED, "file");
  g_object_set_data_full (G_OBJECT (pipeline), "pull", self, pull_free);
  g_signal_connect (pipeline, "deep-element-added", G_CALLBACK (on_element_added), self);
  gst_bin_add_many (GST_BIN (pipeline), source, parse, NULL);
  gst_element_link (source, parse);
  tracks_watch_parsebin (parse);
  g_signal_connect (parse, "pad-added", G_CALLBACK (on_pad_added), self);

  // The owner adds the bus watch.
  bus = gst_element_get_bus (pipeline);
  g_signal_connect (bus, "message", G_CALLBACK (on_message), self);
  gst_object_unref (bus);
  return pipeline;
}

// ---- the URI ----

gchar *
file_pull_check (const gchar *uri, PullUriFlags flags, PullConfig *config)
{
  gchar *path = g_filename_from_uri (uri, NULL, NULL), *wrong;

  if (!path)
    return g_strdup ("not a file URI like file:///dir/clip.mp4");
  config->path = path;
  config->is_limited = flags & PULL_URI_FROM_API;
  wrong = config->is_limited ? file_roots_check (path) : NULL;
  if (wrong)
    return wrong;
  if (g_str_has_suffix (uri, "/")) {
    config->titles = PULL_TITLES_FOLDER;
    config->absent = !g_file_test (path, G_FILE_TEST_IS_DIR);
    if (config->absent)
      return g_strdup_printf ("no such folder: %s", path);
  } else {
    config->absent = !config->endpoint.is_open && !g_file_test (path, G_FILE_TEST_IS_REGULAR);
    if (config->absent)
      return g_strdup_printf ("no such file: %s", path);
  }
  config->uri = g_strdup (uri);
  return NULL;
}
