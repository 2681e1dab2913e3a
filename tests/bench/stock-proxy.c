// SPDX-License-Identifier: LGPL-2.1-or-later
// The yardstick of the benches: the RTSP proxy that gst-rtsp-server and GStreamer's own elements
// make, without Weir.
//
//     stock-proxy ADDRESS PORT [tcp] [sound] /path=rtsp://upstream...
//
// tcp: reads the upstreams over TCP. sound: serves their AAC track, too.

#include <gst/gst.h>
#include <gst/rtsp-server/rtsp-server.h>
#include <stdlib.h>
#include <string.h>

// The origin's packets carry up to 1450 bytes; the same size here keeps the packet counts equal.
#define PACKET_SIZE (1450 + 12)
#define SOUND                                                                                      \
  "src. ! application/x-rtp,media=audio ! rtpmp4gdepay ! aacparse ! rtpmp4gpay name=pay1 pt=97"

static gboolean tcp, sound;

static void
add_mount (GstRTSPMountPoints *mounts, const char *word)
{
  const char *equals = strchr (word, '=');
  GstRTSPMediaFactory *factory = gst_rtsp_media_factory_new ();
  char *path, *launch;

  if (!equals)
    g_error ("not /path=URI: %s", word);
  path = g_strndup (word, (gsize) (equals - word));
  launch = g_strdup_printf ("( rtspsrc name=src location=%s latency=0 %s "
                            "src. ! application/x-rtp,media=video ! rtph264depay ! h264parse ! "
                            "rtph264pay name=pay0 pt=96 mtu=%d %s )",
      equals + 1, tcp ? "protocols=tcp" : "", PACKET_SIZE, sound ? SOUND : "");
  gst_rtsp_media_factory_set_launch (factory, launch);
  gst_rtsp_media_factory_set_shared (factory, TRUE);
  gst_rtsp_mount_points_add_factory (mounts, path, factory);
  g_free (launch);
  g_free (path);
}

int
main (int argc, char **argv)
{
  GstRTSPServer *server;
  GstRTSPMountPoints *mounts;

  gst_init (&argc, &argv);
  if (argc < 4) {
    g_printerr ("usage: stock-proxy ADDRESS PORT [tcp] [sound] /path=rtsp://upstream...\n");
    return 2;
  }
  server = gst_rtsp_server_new ();
  gst_rtsp_server_set_address (server, argv[1]);
  gst_rtsp_server_set_service (server, argv[2]);
  gst_rtsp_server_set_backlog (server, 1000);
  mounts = gst_rtsp_server_get_mount_points (server);
  for (int i = 3; i < argc; i++) {
    if (g_str_equal (argv[i], "tcp"))
      tcp = TRUE;
    else if (g_str_equal (argv[i], "sound"))
      sound = TRUE;
    else
      add_mount (mounts, argv[i]);
  }
  g_object_unref (mounts);
  if (gst_rtsp_server_attach (server, NULL) == 0) {
    g_printerr ("stock-proxy: cannot listen on %s:%s\n", argv[1], argv[2]);
    return 1;
  }
  g_print ("READY\n");
  g_main_loop_run (g_main_loop_new (NULL, FALSE));
  return 0;
}
