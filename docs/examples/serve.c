// A gst-rtsp-server program that serves with Weir: serve [PORT]
#include "weir-rtsp.h"

#define PIPELINE                                                                                   \
  "( videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=25/1 "                 \
  "! vp8enc deadline=1 keyframe-max-dist=25 ! rtpvp8pay name=pay0 )"

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);

  GstRTSPServer *server = gst_rtsp_server_new ();
  GstRTSPMountPoints *mounts = gst_rtsp_server_get_mount_points (server);
  GstRTSPMediaFactory *factory = gst_rtsp_media_factory_new ();
  GError *error = NULL;

  gst_rtsp_media_factory_set_launch (factory, PIPELINE);
  gst_rtsp_media_factory_set_shared (factory, TRUE);
  gst_rtsp_mount_points_add_factory (mounts, "/test", factory);
  g_object_unref (mounts);
  gst_rtsp_server_set_service (server, argc > 1 ? argv[1] : "8554");

  if (!weir_serve (server, &error))
    g_error ("%s", error->message);

  if (gst_rtsp_server_attach (server, NULL) == 0)
    g_error ("cannot listen on this port");
  g_print ("rtsp://127.0.0.1:%d/test\n", gst_rtsp_server_get_bound_port (server));
  g_main_loop_run (g_main_loop_new (NULL, FALSE));
}
