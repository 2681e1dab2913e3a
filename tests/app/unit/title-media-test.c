// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/title_media.h"

#include <fcntl.h>
#include <gio/gio.h>
#include <unistd.h>

#define LIMIT_S 30 // a deadlock fails the test after this time

typedef struct {
  GstRTSPMedia *media;
  GstRTSPThreadPool *threads;
  GstElement *file; // the element that adds tracks
} Given;

static void
set_up (Given *given, gconstpointer unused)
{
  gchar *path = g_build_filename (g_getenv ("WEIR_DATA"), "bigbuckbunny.mp4", NULL);
  GstElement *element;

  given->media = title_media_new (open (path, O_RDONLY | O_CLOEXEC), "/films/title");
  given->threads = gst_rtsp_thread_pool_new ();
  element = gst_rtsp_media_get_element (given->media);
  given->file = gst_bin_get_by_name (GST_BIN (element), "dynpay0");
  gst_object_unref (element);
  g_free (path);
}

static void
tear_down (Given *given, gconstpointer unused)
{
  gst_object_unref (given->file);
  g_object_unref (given->media);
  g_object_unref (given->threads);
}

static void
assert_fails (Given *given)
{
  GError *error = NULL;

  g_assert_false (title_media_prepare (given->media,
      gst_rtsp_thread_pool_get_thread (given->threads, GST_RTSP_THREAD_TYPE_MEDIA, NULL), &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED);
  g_error_free (error);
}

// The client has left before gst-rtsp-server's thread has begun to prepare the media.
static void
media_that_is_given_up_before_it_begins_fails (Given *given, gconstpointer unused)
{
  title_media_give_up (given->media);
  assert_fails (given);
}

// ---- three threads that could deadlock ----

// The first thread adds a track, for which it needs the media's lock. The second takes the media
// down: it holds the pipeline's lock, and waits for the first. The third handles a message: it
// holds the media's lock.
typedef struct {
  GMutex lock;
  GCond cond; // for the fields below
  gboolean is_taken_down, is_handled;
  Given *given;
} Three;

static void
note (Three *three, gboolean *what)
{
  g_mutex_lock (&three->lock);
  *what = TRUE;
  g_cond_broadcast (&three->cond);
  g_mutex_unlock (&three->lock);
}

static void
wait_for (Three *three, gboolean *what)
{
  g_mutex_lock (&three->lock);
  while (!*what)
    g_cond_wait (&three->cond, &three->lock);
  g_mutex_unlock (&three->lock);
}

// Runs in the thread that takes the media down. That begins with the sinks; `first` is marked as
// one.
static GstBusSyncReply
on_message_posted (GstBus *bus, GstMessage *message, gpointer data)
{
  GstState old, new;

  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_STATE_CHANGED
      && g_str_equal (GST_MESSAGE_SRC_NAME (message), "first")) {
    gst_message_parse_state_changed (message, &old, &new, NULL);
    if (old == GST_STATE_PAUSED && new == GST_STATE_READY)
      note (data, &((Three *) data)->is_taken_down);
  }
  return GST_BUS_PASS;
}

// Runs in the third thread, before title_media handles the message.
static gboolean
on_latency (GstRTSPMedia *media, GstMessage *message, Three *three)
{
  note (three, &three->is_handled);
  return FALSE;
}

// Runs in the thread that adds the track, before gst-rtsp-server's own handler.
static void
on_track (GstElement *file, GstPad *pad, Three *three)
{
  title_media_give_up (three->given->media);
  wait_for (three, &three->is_taken_down);
  gst_element_post_message (file, gst_message_new_latency (GST_OBJECT (file)));
  wait_for (three, &three->is_handled);
}

static GstElement *
get_pipeline (Given *given)
{
  GstElement *element = gst_rtsp_media_get_element (given->media);
  GstElement *pipeline = GST_ELEMENT (gst_object_get_parent (GST_OBJECT (element)));

  gst_object_unref (element);
  return pipeline;
}

static void
media_that_is_given_up_while_a_track_is_added_fails (Given *given, gconstpointer unused)
{
  Three three = { .given = given };
  GstElement *pipeline = get_pipeline (given);
  GstElement *first = gst_bin_new ("first");
  GstBus *bus = gst_element_get_bus (pipeline);

  g_mutex_init (&three.lock);
  g_cond_init (&three.cond);
  GST_OBJECT_FLAG_SET (first, GST_ELEMENT_FLAG_SINK);
  gst_bin_add (GST_BIN (pipeline), first);
  gst_bus_set_sync_handler (bus, on_message_posted, &three, NULL);
  g_signal_connect (given->media, "handle-message::latency", G_CALLBACK (on_latency), &three);
  g_signal_connect (given->file, "pad-added", G_CALLBACK (on_track), &three);
  alarm (LIMIT_S);
  assert_fails (given);
  alarm (0);
  gst_bus_set_sync_handler (bus, NULL, NULL, NULL);
  gst_object_unref (bus);
  gst_object_unref (pipeline);
  g_mutex_clear (&three.lock);
  g_cond_clear (&three.cond);
}

// ---- bytes that cannot be read ----

// The pipeline changes its state until the sink has data, as it does after a seek.
static GstElement *
begin_to_play (GstElement *pipeline)
{
  GstElement *source = gst_element_factory_make ("appsrc", NULL);
  GstElement *sink = gst_element_factory_make ("fakesink", NULL);

  gst_bin_add_many (GST_BIN (pipeline), source, sink, NULL);
  gst_element_link (source, sink);
  g_assert_cmpint (gst_element_set_state (pipeline, GST_STATE_PLAYING), ==, GST_STATE_CHANGE_ASYNC);
  return source;
}

static void
a_read_failure_during_a_change_of_state_lets_it_end (Given *given, gconstpointer unused)
{
  GstElement *pipeline = get_pipeline (given), *source;
  GstElement *reads = GST_BIN_CHILDREN (given->file)->data;
  GstBuffer *data = gst_buffer_new_allocate (NULL, 1, NULL);
  GstFlowReturn ret;

  gst_element_set_locked_state (given->file, TRUE);
  source = begin_to_play (pipeline);
  GST_ELEMENT_ERROR (reads, RESOURCE, READ, ("a block is lost"), (NULL));
  g_signal_emit_by_name (source, "push-buffer", data, &ret);
  g_assert_cmpint (ret, ==, GST_FLOW_OK);
  g_assert_cmpint (gst_element_get_state (pipeline, NULL, NULL, LIMIT_S * GST_SECOND), ==,
      GST_STATE_CHANGE_SUCCESS);
  gst_element_set_locked_state (given->file, FALSE);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_buffer_unref (data);
  gst_object_unref (pipeline);
}

#define ADD(name, test) g_test_add (name, Given, NULL, set_up, test, tear_down)

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  ADD ("/title-media/given-up-before-it-begins", media_that_is_given_up_before_it_begins_fails);
  ADD ("/title-media/given-up-while-a-track-is-added",
      media_that_is_given_up_while_a_track_is_added_fails);
  ADD ("/title-media/a-read-failure-during-a-change-of-state-lets-it-end",
      a_read_failure_during_a_change_of_state_lets_it_end);
  return g_test_run ();
}
