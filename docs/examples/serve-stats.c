// SPDX-License-Identifier: LGPL-2.1-or-later
// A gst-rtsp-server program that serves with Weir. Every second it prints the statistics of its
// readers, and the last receiver report of each session: serve-stats [PORT]
#include <stdlib.h>
#include <string.h>

#include <weir-rtsp.h>

#define PIPELINE                                                                                   \
  "( videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=25/1 "                 \
  "! vp8enc deadline=1 keyframe-max-dist=25 ! rtpvp8pay name=pay0 )"

static GWeakRef current_media;

static guint64
get_number (const GstStructure *stats, const gchar *field)
{
  guint64 number = 0;

  gst_structure_get_uint64 (stats, field, &number);
  return number;
}

// `reader` is "HOST:PORT" or "TOKEN:CHANNEL", which this changes.
static void
print_reader (GstElement *sink, gchar *reader)
{
  gchar *colon = strrchr (reader, ':');
  GstStructure *stats = NULL;

  *colon = '\0';
  g_signal_emit_by_name (sink, "get-stats", reader, atoi (colon + 1), &stats);
  g_print ("reader %s port %s state %s sent %" G_GUINT64_FORMAT
           " packets, dropped %" G_GUINT64_FORMAT ", lag %" G_GUINT64_FORMAT " ms\n",
      reader, colon + 1, gst_structure_get_string (stats, "state"),
      get_number (stats, "packets-sent"), get_number (stats, "dropped"),
      get_number (stats, "lag") / GST_MSECOND);
  gst_structure_free (stats);
}

static void
print_sink (GstElement *sink)
{
  GstStructure *stats = NULL;
  gchar *clients = NULL, **readers;

  g_object_get (sink, "fanout-stats", &stats, "clients", &clients, NULL);
  g_print ("in %" G_GUINT64_FORMAT " packets, sent %" G_GUINT64_FORMAT
           " packets in %" G_GUINT64_FORMAT " UDP messages\n",
      get_number (stats, "packets-in"), get_number (stats, "packets-sent"),
      get_number (stats, "sends"));
  gst_structure_free (stats);
  readers = g_strsplit (clients, ",", 0);
  for (gchar **reader = readers; *reader; reader++)
    print_reader (sink, *reader);
  g_strfreev (readers);
  g_free (clients);
}

// Prints the last receiver report of a session's reader about the first stream.
static GstRTSPFilterResult
print_report (GstRTSPSession *session, GstRTSPSessionMedia *media, gpointer unused)
{
  GstRTSPStreamTransport *transport = gst_rtsp_session_media_get_transport (media, 0);
  GstStructure *report = transport ? weir_transport_get_report (transport) : NULL;
  gdouble loss = 0;
  guint jitter = 0;

  if (report) {
    gst_structure_get (
        report, "fraction-lost", G_TYPE_DOUBLE, &loss, "jitter", G_TYPE_UINT, &jitter, NULL);
    g_print ("session %s lost %.1f %%, jitter %.1f ms\n", gst_rtsp_session_get_sessionid (session),
        100 * loss, jitter / 90.0); // the clock rate of video is 90 kHz
    gst_structure_free (report);
  }
  return GST_RTSP_FILTER_KEEP;
}

static GstRTSPFilterResult
print_reports (GstRTSPSessionPool *pool, GstRTSPSession *session, gpointer unused)
{
  gst_rtsp_session_filter (session, print_report, NULL);
  return GST_RTSP_FILTER_KEEP;
}

static gboolean
print_statistics (gpointer server)
{
  GstRTSPSessionPool *pool = gst_rtsp_server_get_session_pool (server);
  GstRTSPMedia *media = (GstRTSPMedia *) g_weak_ref_get (&current_media);
  GstRTSPStream *stream = media ? gst_rtsp_media_get_stream (media, 0) : NULL;
  GstElement *sink = stream ? weir_stream_find_sink (stream) : NULL;

  if (sink) {
    print_sink (sink);
    gst_object_unref (sink);
  }
  g_clear_object (&media);
  gst_rtsp_session_pool_filter (pool, print_reports, NULL);
  g_object_unref (pool);
  return G_SOURCE_CONTINUE;
}

static void
on_media (GstRTSPMediaFactory *factory, GstRTSPMedia *media, gpointer unused)
{
  g_weak_ref_set (&current_media, media);
}

static void
on_closed (GstRTSPClient *client, gpointer unused)
{
  gchar *reason = weir_client_get_close_reason (client);

  g_print ("closed: %s\n", reason ? reason : "by the client");
  g_free (reason);
}

static void
on_connected (GstRTSPServer *server, GstRTSPClient *client, gpointer unused)
{
  g_signal_connect (client, "closed", G_CALLBACK (on_closed), NULL);
}

int
main (int argc, char **argv)
{
  GstRTSPServer *server;
  GstRTSPMountPoints *mounts;
  GstRTSPMediaFactory *factory;
  GError *error = NULL;

  gst_init (&argc, &argv);
  server = gst_rtsp_server_new ();
  gst_rtsp_server_set_service (server, argc > 1 ? argv[1] : "8554");
  if (!weir_serve (server, &error))
    g_error ("%s", error->message);

  factory = gst_rtsp_media_factory_new ();
  gst_rtsp_media_factory_set_launch (factory, PIPELINE);
  gst_rtsp_media_factory_set_shared (factory, TRUE);
  g_weak_ref_init (&current_media, NULL);
  g_signal_connect (factory, "media-configure", G_CALLBACK (on_media), NULL);
  mounts = gst_rtsp_server_get_mount_points (server);
  gst_rtsp_mount_points_add_factory (mounts, "/test", factory);
  g_object_unref (mounts);

  g_signal_connect (server, "client-connected", G_CALLBACK (on_connected), NULL);
  g_timeout_add_seconds (1, print_statistics, server);
  if (gst_rtsp_server_attach (server, NULL) == 0)
    g_error ("cannot listen on this port");
  g_print ("rtsp://127.0.0.1:%d/test\n", gst_rtsp_server_get_bound_port (server));
  g_main_loop_run (g_main_loop_new (NULL, FALSE));
}
