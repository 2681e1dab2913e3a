// SPDX-License-Identifier: LGPL-2.1-or-later
#include "content/title_media.h"

#include <fcntl.h>
#include <gio/gio.h>

// Whoever asked for it is gone before the library's thread has looked at it.
static void
one_that_is_given_up_before_it_begins_fails (void)
{
  gchar *path = g_build_filename (g_getenv ("WEIR_DATA"), "bigbuckbunny.mp4", NULL);
  GstRTSPMedia *media = title_media_new (open (path, O_RDONLY | O_CLOEXEC), "/films/title");
  GstRTSPThreadPool *threads = gst_rtsp_thread_pool_new ();
  GError *error = NULL;

  title_media_give_up (media);
  g_assert_false (title_media_prepare (
      media, gst_rtsp_thread_pool_get_thread (threads, GST_RTSP_THREAD_TYPE_MEDIA, NULL), &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED);
  g_error_free (error);
  g_object_unref (media);
  g_object_unref (threads);
  g_free (path);
}

static void
give_up_now (GstElement *file, GstPad *pad, GstRTSPMedia *media)
{
  title_media_give_up (media);
  // The library's own handler comes after this one, and its thread has seen the error by then.
  g_usleep (200 * 1000);
}

static void
one_that_is_given_up_while_a_track_comes_fails (void)
{
  gchar *path = g_build_filename (g_getenv ("WEIR_DATA"), "bigbuckbunny.mp4", NULL);
  GstRTSPMedia *media = title_media_new (open (path, O_RDONLY | O_CLOEXEC), "/films/title");
  GstRTSPThreadPool *threads = gst_rtsp_thread_pool_new ();
  GstElement *element = gst_rtsp_media_get_element (media);
  GstElement *file = gst_bin_get_by_name (GST_BIN (element), "dynpay0");
  GError *error = NULL;

  g_signal_connect (file, "pad-added", G_CALLBACK (give_up_now), media);
  g_assert_false (title_media_prepare (
      media, gst_rtsp_thread_pool_get_thread (threads, GST_RTSP_THREAD_TYPE_MEDIA, NULL), &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED);
  g_error_free (error);
  gst_object_unref (file);
  gst_object_unref (element);
  g_object_unref (media);
  g_object_unref (threads);
  g_free (path);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/title/given-up-before-it-begins", one_that_is_given_up_before_it_begins_fails);
  g_test_add_func (
      "/title/given-up-while-a-track-comes", one_that_is_given_up_while_a_track_comes_fails);
  return g_test_run ();
}
