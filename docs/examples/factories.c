// Weir's elements in media factories of gst-rtsp-server: factories [PORT]
//
// One pipeline encodes a test picture and keeps its last 30 s in an interval cache. Each mount is a
// factory that reads from this cache, so the picture is encoded once for all of them.
#include "weir-rtsp.h"

// Every second picture is of the upper temporal layer.
#define CAMERA                                                                                     \
  "videotestsrc is-live=true pattern=ball ! video/x-raw,width=320,height=240,framerate=25/1 "      \
  "! svcenc spatial-layers=1 temporal-layers=2 gop-size=24 ! rtph264pay "                          \
  "! intervalcache channel=camera max-time=30000000000"

static const struct {
  const gchar *path, *launch;
} mounts[] = {
  // From the newest keyframe, so that a reader has a picture at once.
  { "/live", "( intervalcachesrc channel=camera start=join-point ! rtprelaypay name=pay0 )" },
  // The same, 5 s later.
  { "/late", "( intervalcachesrc channel=camera delay=5000000000 ! rtprelaypay name=pay0 )" },
  // Half the pictures, for a narrow line.
  { "/small", "( intervalcachesrc channel=camera start=join-point ! svclayerfilter max-temporal=0 "
              "! rtprelaypay name=pay0 )" },
  // Each packet leaves at its time, without bursts.
  { "/even", "( intervalcachesrc channel=camera ! ratepacer ! rtprelaypay name=pay0 )" },
};

static GstElement *
start_camera (void)
{
  GError *error = NULL;
  GstElement *camera = gst_parse_launch (CAMERA, &error);

  if (error)
    g_error ("%s", error->message);
  gst_element_set_state (camera, GST_STATE_PLAYING);
  return camera;
}

static void
add_mounts (GstRTSPServer *server)
{
  GstRTSPMountPoints *points = gst_rtsp_server_get_mount_points (server);

  for (guint i = 0; i < G_N_ELEMENTS (mounts); i++) {
    GstRTSPMediaFactory *factory = gst_rtsp_media_factory_new ();

    gst_rtsp_media_factory_set_launch (factory, mounts[i].launch);
    gst_rtsp_media_factory_set_shared (factory, TRUE);
    gst_rtsp_mount_points_add_factory (points, mounts[i].path, factory);
  }
  g_object_unref (points);
}

int
main (int argc, char **argv)
{
  GError *error = NULL;

  gst_init (&argc, &argv);

  GstRTSPServer *server = gst_rtsp_server_new ();

  // All factories serve their readers with fanoutsink.
  if (!weir_serve (server, &error))
    g_error ("%s", error->message);
  start_camera ();
  add_mounts (server);
  gst_rtsp_server_set_service (server, argc > 1 ? argv[1] : "8554");
  if (gst_rtsp_server_attach (server, NULL) == 0)
    g_error ("cannot listen on this port");
  for (guint i = 0; i < G_N_ELEMENTS (mounts); i++)
    g_print ("rtsp://127.0.0.1:%d%s\n", gst_rtsp_server_get_bound_port (server), mounts[i].path);
  g_main_loop_run (g_main_loop_new (NULL, FALSE));
}
