// SPDX-License-Identifier: LGPL-2.1-or-later
// A gst-rtsp-server program with weir_serve() that prints events of its sessions:
// served ADDRESS TIMEOUT [PEM]
//   /test     two tracks, JPEG and A-law, shared
//   /keep     the same; sessions outlive their connection
//   /heavy    one track of several MB per second, shared
//   /one      A-law only, shared
//   /unicast  the same, without multicast
//   /relay    A-law as a relay media: prints each request for a keyframe, and pretends to be video
//   /record   records A-law
// After a GET_PARAMETER of a session it prints the reports of the reader about its first track. The
// header X-Wait delays a response by that number of ms.
#include <stdlib.h>

#include "weir-rtsp.h"

#define TRACKS                                                                                     \
  "( videotestsrc is-live=true ! video/x-raw,format=I420,width=320,height=240 ! jpegenc "          \
  "! rtpjpegpay name=pay0 audiotestsrc is-live=true ! audio/x-raw,rate=8000,channels=1 "           \
  "! alawenc ! rtppcmapay name=pay1 max-ptime=20000000 )"
#define ONE_TRACK                                                                                  \
  "( audiotestsrc is-live=true ! audio/x-raw,rate=8000,channels=1 ! alawenc "                      \
  "! rtppcmapay name=pay0 max-ptime=20000000 )"
#define RELAY                                                                                      \
  "( audiotestsrc is-live=true ! audio/x-raw,rate=8000,channels=1 ! alawenc "                      \
  "! rtppcmapay max-ptime=20000000 ! capssetter "                                                  \
  "caps=\"application/x-rtp,media=(string)video\" ! rtprelaypay name=pay0 )"
#define HEAVY                                                                                      \
  "( videotestsrc is-live=true pattern=snow ! video/x-raw,format=I420,width=640,height=480 "       \
  "! jpegenc ! rtpjpegpay name=pay0 )"
#define RECORD "( rtppcmadepay name=depay0 ! fakesink name=sink signal-handoffs=true sync=false )"

static int session_timeout;

static void
add (GstRTSPServer *server, const gchar *path, GstRTSPMediaFactory *factory)
{
  GstRTSPMountPoints *mounts = gst_rtsp_server_get_mount_points (server);

  gst_rtsp_media_factory_set_shared (factory, TRUE);
  gst_rtsp_mount_points_add_factory (mounts, path, factory);
  g_object_unref (mounts);
}

static void
on_session_removed (GstRTSPSessionPool *pool, GstRTSPSession *session, gpointer unused)
{
  g_print ("removed %s\n", gst_rtsp_session_get_sessionid (session));
}

static void
on_new_session (GstRTSPClient *client, GstRTSPSession *session, gpointer unused)
{
  gst_rtsp_session_set_timeout (session, (guint) session_timeout);
  g_object_set (session, "extra-timeout", 0, NULL);
}

static void
print (const gchar *what, GstStructure *structure)
{
  gchar *text = structure ? gst_structure_to_string (structure) : g_strdup ("nothing");

  g_print ("%s %s\n", what, text);
  g_free (text);
  g_clear_pointer (&structure, gst_structure_free);
}

static guint
count_sources (GstRTSPStream *stream)
{
  GObject *session = gst_rtsp_stream_get_rtpsession (stream);
  guint n = 0;

  if (g_object_class_find_property (G_OBJECT_GET_CLASS (session), "num-sources"))
    g_object_get (session, "num-sources", &n, NULL);
  g_object_unref (session);
  return n;
}

static void
print_report_count (GstRTSPStreamTransport *transport)
{
  guint64 *count = weir_transport_ref_report_count (transport);

  if (count)
    g_print ("stored %" G_GUINT64_FORMAT "\n", __atomic_load_n (count, __ATOMIC_RELAXED));
  g_clear_pointer (&count, g_atomic_rc_box_release);
}

static void
on_get_parameter (GstRTSPClient *client, GstRTSPContext *ctx, gpointer unused)
{
  GstRTSPSessionPool *pool = gst_rtsp_client_get_session_pool (client);
  GstRTSPSessionMedia *media = NULL;
  GstRTSPStreamTransport *transport;
  GstRTSPSession *session;
  gchar *id = NULL;
  gint matched;

  gst_rtsp_message_get_header (ctx->request, GST_RTSP_HDR_SESSION, &id, 0);
  session = id ? gst_rtsp_session_pool_find (pool, id) : NULL;
  g_object_unref (pool);
  if (session) {
    media = gst_rtsp_session_dup_media (session, ctx->uri->abspath, &matched);
    g_object_unref (session);
  }
  if (!media)
    return;
  transport = gst_rtsp_session_media_get_transport (media, 0);
  if (transport) {
    GstRTSPStream *stream = gst_rtsp_media_get_stream (gst_rtsp_session_media_get_media (media), 0);

    // The report comes second, so that it is at least as new as the counts.
    print ("counts", weir_stream_get_report_counts (stream));
    print ("report", weir_transport_get_report (transport));
    print_report_count (transport);
    g_print ("sources %u\n", count_sources (stream));
  }
  g_object_unref (media);
}

static void
on_send_message (
    GstRTSPClient *client, GstRTSPContext *ctx, GstRTSPMessage *message, gpointer unused)
{
  gchar *ms = NULL;

  if (ctx->request && gst_rtsp_message_get_type (message) == GST_RTSP_MESSAGE_RESPONSE)
    gst_rtsp_message_get_header_by_name (ctx->request, "X-Wait", &ms, 0);
  if (ms)
    g_usleep (1000 * (gulong) atoi (ms));
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
  g_signal_connect (client, "new-session", G_CALLBACK (on_new_session), NULL);
  g_signal_connect (client, "send-message", G_CALLBACK (on_send_message), NULL);
  g_signal_connect (client, "closed", G_CALLBACK (on_closed), NULL);
  g_signal_connect (client, "get-parameter-request", G_CALLBACK (on_get_parameter), NULL);
}

static void
on_handoff (GstElement *sink, GstBuffer *buffer, GstPad *pad, guint *n)
{
  if (++*n % 10 == 0)
    g_print ("recorded %u\n", *n);
}

static void
on_record (GstRTSPMediaFactory *factory, GstRTSPMedia *media, gpointer unused)
{
  static guint n;
  GstElement *bin = gst_rtsp_media_get_element (media);
  GstElement *sink = gst_bin_get_by_name (GST_BIN (bin), "sink");

  g_signal_connect (sink, "handoff", G_CALLBACK (on_handoff), &n);
  gst_object_unref (sink);
  gst_object_unref (bin);
}

static GstPadProbeReturn
on_event (GstPad *pad, GstPadProbeInfo *info, gpointer unused)
{
  if (gst_event_has_name (GST_PAD_PROBE_INFO_EVENT (info), "GstForceKeyUnit"))
    g_print ("asked for a keyframe\n");
  return GST_PAD_PROBE_OK;
}

static void
on_relay (GstRTSPMediaFactory *factory, GstRTSPMedia *media, gpointer unused)
{
  GstElement *bin = gst_rtsp_media_get_element (media);
  GstElement *pay = gst_bin_get_by_name (GST_BIN (bin), "pay0");
  GstPad *pad = gst_element_get_static_pad (pay, "sink");

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_EVENT_UPSTREAM, on_event, NULL, NULL);
  gst_object_unref (pad);
  gst_object_unref (pay);
  gst_object_unref (bin);
}

static gboolean
clean_up (gpointer pool)
{
  gst_rtsp_session_pool_cleanup (pool);
  return G_SOURCE_CONTINUE;
}

static void
speak_tls (GstRTSPServer *server, const gchar *pem)
{
  GError *error = NULL;
  GTlsCertificate *certificate = g_tls_certificate_new_from_file (pem, &error);
  GstRTSPAuth *auth = gst_rtsp_auth_new ();
  GstRTSPToken *token =
      gst_rtsp_token_new (GST_RTSP_TOKEN_MEDIA_FACTORY_ROLE, G_TYPE_STRING, "anyone", NULL);

  if (!certificate)
    g_error ("%s", error->message);
  gst_rtsp_auth_set_tls_certificate (auth, certificate);
  gst_rtsp_auth_set_default_token (auth, token);
  gst_rtsp_server_set_auth (server, auth);
  gst_rtsp_token_unref (token);
  g_object_unref (certificate);
  g_object_unref (auth);
}

static GstRTSPMediaFactory *
make_factory (const gchar *launch)
{
  GstRTSPMediaFactory *factory = gst_rtsp_media_factory_new ();

  gst_rtsp_media_factory_set_launch (factory, launch);
  gst_rtsp_media_factory_add_role (factory, "anyone", GST_RTSP_PERM_MEDIA_FACTORY_ACCESS,
      G_TYPE_BOOLEAN, TRUE, GST_RTSP_PERM_MEDIA_FACTORY_CONSTRUCT, G_TYPE_BOOLEAN, TRUE, NULL);
  return factory;
}

int
main (int argc, char **argv)
{
  GstRTSPServer *server;
  GstRTSPSessionPool *pool;
  GstRTSPMediaFactory *keep, *record, *relay, *unicast;
  GError *error = NULL;

  gst_init (&argc, &argv);
  session_timeout = argc > 2 ? atoi (argv[2]) : 60;
  server = gst_rtsp_server_new ();
  gst_rtsp_server_set_service (server, "0");
  gst_rtsp_server_set_address (server, argc > 1 ? argv[1] : "127.0.0.1");
  gst_rtsp_server_set_backlog (server, 100);
  if (argc > 3)
    speak_tls (server, argv[3]);

  add (server, "/test", make_factory (TRACKS));
  add (server, "/heavy", make_factory (HEAVY));
  keep = make_factory (TRACKS);
  gst_rtsp_media_factory_set_stop_on_disconnect (keep, FALSE);
  add (server, "/keep", keep);
  add (server, "/one", make_factory (ONE_TRACK));
  unicast = make_factory (ONE_TRACK);
  gst_rtsp_media_factory_set_protocols (
      unicast, GST_RTSP_LOWER_TRANS_UDP | GST_RTSP_LOWER_TRANS_TCP);
  add (server, "/unicast", unicast);
  relay = make_factory (RELAY);
  gst_rtsp_media_factory_set_media_gtype (relay, WEIR_TYPE_RELAY_MEDIA);
  gst_rtsp_media_factory_set_protocols (relay, GST_RTSP_LOWER_TRANS_UDP | GST_RTSP_LOWER_TRANS_TCP);
  g_signal_connect (relay, "media-configure", G_CALLBACK (on_relay), NULL);
  add (server, "/relay", relay);
  record = make_factory (RECORD);
  gst_rtsp_media_factory_set_transport_mode (record, GST_RTSP_TRANSPORT_MODE_RECORD);
  g_signal_connect (record, "media-configure", G_CALLBACK (on_record), NULL);
  add (server, "/record", record);

  pool = gst_rtsp_server_get_session_pool (server);
  g_signal_connect (pool, "session-removed", G_CALLBACK (on_session_removed), NULL);
  g_timeout_add (200, clean_up, pool);
  g_signal_connect (server, "client-connected", G_CALLBACK (on_connected), NULL);
  if (!weir_serve (server, &error))
    g_error ("%s", error->message);
  gst_rtsp_server_attach (server, NULL);
  g_print ("READY %d\n", gst_rtsp_server_get_bound_port (server));
  g_main_loop_run (g_main_loop_new (NULL, FALSE));
}
