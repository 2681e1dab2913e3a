// SPDX-License-Identifier: LGPL-2.1-or-later

// A clip, payloaded and looped in real time. The timestamps run on over the end of the clip.

#include "tracks.h"

typedef struct {
  const PullContext *context;
  GstElement *pipeline; // not owned
  Tracks *tracks;
  gboolean begun;
} FilePull;

static void
pull_free (gpointer data)
{
  FilePull *self = data;

  tracks_free (self->tracks);
  g_free (self);
}

static void
on_pad_added (GstElement *parsebin, GstPad *pad, gpointer data)
{
  tracks_add_stream (((FilePull *) data)->tracks, pad);
}

// Prerolled: every track's caps are there.
static void
begin (FilePull *self)
{
  const PullContext *context = self->context;

  if (!tracks_begin (self->tracks)) {
    context->callbacks->ended (context->owner, "the file has no track that can be relayed");
    return;
  }
  // SEGMENT: the end of the clip is announced instead of an EOS, and the next round follows on.
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
  const gchar *path = context->config->path;
  GstElement *pipeline, *source, *parse;
  FilePull *self;
  GstBus *bus;

  if (!g_file_test (path, G_FILE_TEST_IS_REGULAR)) {
    g_set_error (
        error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND, "there is no file %s", path);
    return NULL;
  }
  parse = pull_make ("parsebin", error);
  if (!parse)
    return NULL;
  source = gst_element_factory_make ("filesrc", NULL); // of GStreamer's core
  g_object_set (source, "location", path, NULL);

  self = g_new0 (FilePull, 1);
  self->context = context;
  self->pipeline = pipeline = gst_pipeline_new (NULL);
  self->tracks = tracks_new (context, pipeline, TRACKS_PACED);
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
