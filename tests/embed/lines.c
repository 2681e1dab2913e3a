// SPDX-License-Identifier: LGPL-2.1-or-later
// A gst-rtsp-server program that runs a pipeline and serves launch lines:
// lines HOW PIPELINE {PATH LINE}...
// HOW is stock (without Weir), weir (with weir_serve()), or relay (with relay medias, too).
#include "weir-rtsp.h"

static void
add (GstRTSPServer *server, gboolean relay, const gchar *path, const gchar *line)
{
  GstRTSPMountPoints *points = gst_rtsp_server_get_mount_points (server);
  GstRTSPMediaFactory *factory = gst_rtsp_media_factory_new ();

  gst_rtsp_media_factory_set_launch (factory, line);
  if (relay)
    gst_rtsp_media_factory_set_media_gtype (factory, WEIR_TYPE_RELAY_MEDIA);
  gst_rtsp_mount_points_add_factory (points, path, factory);
  g_object_unref (points);
}

int
main (int argc, char **argv)
{
  GError *error = NULL;
  GstElement *pipeline;
  GstRTSPThreadPool *pool;
  GstRTSPServer *server;

  gst_init (&argc, &argv);
  if (argc < 5 || argc % 2 == 0)
    g_error ("usage: lines stock|weir|relay PIPELINE {PATH LINE}...");
  server = gst_rtsp_server_new ();
  if (!g_str_equal (argv[1], "stock") && !weir_serve (server, &error))
    g_error ("%s", error->message);
  pipeline = gst_parse_launch (argv[2], &error);
  if (error)
    g_error ("%s", error->message);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  for (int i = 3; i < argc; i += 2)
    add (server, g_str_equal (argv[1], "relay"), argv[i], argv[i + 1]);
  gst_rtsp_server_set_service (server, "0");
  if (gst_rtsp_server_attach (server, NULL) == 0)
    g_error ("cannot listen");
  // A media that waits for its first packet must not keep the clients of the others waiting.
  pool = gst_rtsp_server_get_thread_pool (server);
  gst_rtsp_thread_pool_set_max_threads (pool, -1);
  g_object_unref (pool);
  g_print ("READY %d\n", gst_rtsp_server_get_bound_port (server));
  g_main_loop_run (g_main_loop_new (NULL, FALSE));
}
