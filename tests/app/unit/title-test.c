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

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/title/given-up-before-it-begins", one_that_is_given_up_before_it_begins_fails);
  return g_test_run ();
}
