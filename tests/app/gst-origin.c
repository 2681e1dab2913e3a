// SPDX-License-Identifier: LGPL-2.1-or-later
// An RTSP server of gst-rtsp-server and GStreamer's own elements:
//
//     gst-origin FILE.mp4
//
// It serves the file's H.264 and AAC in real time at /film, for each client from the start, and
// prints "PORT n".
#include <gst/gst.h>
#include <gst/rtsp-server/rtsp-server.h>

int
main (int argc, char **argv)
{
  GstRTSPServer *server;
  GstRTSPMountPoints *mounts;
  GstRTSPMediaFactory *factory;
  gchar *launch;

  gst_init (&argc, &argv);
  if (argc != 2) {
    g_printerr ("usage: gst-origin FILE.mp4\n");
    return 2;
  }
  launch = g_strdup_printf ("( filesrc location=%s ! qtdemux name=demuxer "
                            "demuxer. ! queue ! h264parse ! rtph264pay name=pay0 pt=96 "
                            "demuxer. ! queue ! aacparse ! rtpmp4gpay name=pay1 pt=97 )",
      argv[1]);
  factory = gst_rtsp_media_factory_new ();
  gst_rtsp_media_factory_set_launch (factory, launch);
  g_free (launch);
  server = gst_rtsp_server_new ();
  gst_rtsp_server_set_address (server, "127.0.0.1");
  gst_rtsp_server_set_service (server, "0");
  mounts = gst_rtsp_server_get_mount_points (server);
  gst_rtsp_mount_points_add_factory (mounts, "/film", factory);
  g_object_unref (mounts);
  if (gst_rtsp_server_attach (server, NULL) == 0) {
    g_printerr ("gst-origin: cannot listen on 127.0.0.1\n");
    return 1;
  }
  g_print ("PORT %d\n", gst_rtsp_server_get_bound_port (server));
  g_main_loop_run (g_main_loop_new (NULL, FALSE));
  return 0;
}
