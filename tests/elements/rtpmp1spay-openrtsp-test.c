// SPDX-License-Identifier: LGPL-2.1-or-later
// live555's client (Debian: livemedia-utils) receives what rtpmp1spay sends.
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <gst/rtsp-server/rtsp-server.h>

#define SECONDS "20" // at most; openRTSP ends when the stream does

static GstRTSPServer *
serve (const gchar *clip)
{
  GstRTSPServer *server = gst_rtsp_server_new ();
  GstRTSPMountPoints *mounts = gst_rtsp_server_get_mount_points (server);
  GstRTSPMediaFactory *factory = gst_rtsp_media_factory_new ();
  gchar *line = g_strdup_printf ("( filesrc location=%s ! "
                                 "video/mpeg,mpegversion=1,systemstream=true ! "
                                 "rtpmp1spay name=pay0 )",
      clip);

  gst_rtsp_media_factory_set_launch (factory, line);
  gst_rtsp_mount_points_add_factory (mounts, "/a", factory);
  gst_rtsp_server_set_address (server, "127.0.0.1");
  gst_rtsp_server_set_service (server, "0");
  g_assert_cmpuint (gst_rtsp_server_attach (server, NULL), >, 0);
  g_object_unref (mounts);
  g_free (line);
  return server;
}

static void
on_end (GObject *process, GAsyncResult *result, gpointer ended)
{
  g_assert_true (g_subprocess_wait_finish (G_SUBPROCESS (process), result, NULL));
  *(gboolean *) ended = TRUE;
}

// Runs openRTSP, over TCP so that nothing is lost, until it has ended. It writes into the folder.
static void
receive (const gchar *program, const gchar *folder, gint port)
{
  GSubprocessLauncher *launcher = g_subprocess_launcher_new (
      G_SUBPROCESS_FLAGS_STDOUT_SILENCE | G_SUBPROCESS_FLAGS_STDERR_SILENCE);
  gchar *url = g_strdup_printf ("rtsp://127.0.0.1:%d/a", port);
  gboolean ended = FALSE;
  GSubprocess *process;

  g_subprocess_launcher_set_cwd (launcher, folder);
  process = g_subprocess_launcher_spawn (launcher, NULL, program, "-t", "-d", SECONDS, url, NULL);
  g_assert_nonnull (process);
  g_subprocess_wait_async (process, NULL, on_end, &ended);
  while (!ended)
    g_main_context_iteration (NULL, TRUE);
  g_object_unref (process);
  g_object_unref (launcher);
  g_free (url);
}

static void
test_same_bytes (gconstpointer clip)
{
  gchar *program = g_find_program_in_path ("openRTSP"), *folder, *path, *sent, *got;
  gsize n_sent, n_got;
  GstRTSPServer *server;

  if (!program) {
    g_test_skip ("openRTSP of live555 is not on the PATH");
    return;
  }
  server = serve (clip);
  folder = g_dir_make_tmp (NULL, NULL);
  path = g_build_filename (folder, "video-MP1S-1", NULL);
  receive (program, folder, gst_rtsp_server_get_bound_port (server));
  g_assert_true (g_file_get_contents (clip, &sent, &n_sent, NULL));
  g_assert_true (g_file_get_contents (path, &got, &n_got, NULL));
  g_assert_cmpmem (got, n_got, sent, n_sent);
  g_assert_cmpint (g_remove (path), ==, 0);
  g_assert_cmpint (g_rmdir (folder), ==, 0);
  g_object_unref (server);
  g_free (sent);
  g_free (got);
  g_free (path);
  g_free (folder);
  g_free (program);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/rtpmp1spay/openrtsp-gets-the-same-bytes", argv[1], test_same_bytes);
  return g_test_run ();
}
