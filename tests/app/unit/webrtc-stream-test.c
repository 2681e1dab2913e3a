// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/webrtc_stream.h"

#include <gst/gst.h>
#include <string.h>

#include "base/clock.h"
#include "base/element.h"
#include "base/file_roots.h"
#include "base/main_loop.h"
#include "config/mount_read.h"
#include "mounts/mounts.h"
#include "outlets/webrtc/webrtc_choice.h"
#include "rtp/rtcp.h"
#include "sources/upstream.h"

#define PATIENCE_S 30
#define PACKETS 60 // of each track

static void
publish (Presentation *presentation, gpointer unused)
{
}

static void
withdraw (const gchar *path, gpointer unused)
{
}

static void
close_readers (Presentation *presentation, const gchar *reason, gpointer unused)
{
}

static const MountOutlet outlet = { publish, withdraw, publish };
static const TitleOutlet title_outlet = { 0 }; // no title is opened here

typedef struct {
  MountContext context;
  StageSet *set;
  Mounts *mounts;
  Presentation *presentation; // of a clip of H.264 and AAC
} Fixture;

static gboolean
on_late (gpointer unused)
{
  g_error ("it takes too long");
  return G_SOURCE_REMOVE;
}

static void
on_ready (gpointer done)
{
  *(gboolean *) done = TRUE;
}

static void
use_clip (Fixture *f, const gchar *more)
{
  gchar *text = g_strdup_printf (
      "{\"upstream\": \"file://%s/bigbuckbunny.mp4\"%s}", g_getenv ("WEIR_DATA"), more);
  GError *error = NULL;
  YamlReader *reader = yaml_reader_new ("body", text, strlen (text), &error);
  MountConfig *config = reader ? mount_read_body (f->set, "/cam", reader, NULL, &error) : NULL;
  gboolean done = FALSE;
  Mount *mount;

  g_assert_no_error (error);
  yaml_reader_free (reader);
  mount = mounts_add (f->mounts, config, &error);
  g_assert_no_error (error);
  f->presentation = mount_use (mount, NULL, &error);
  g_assert_no_error (error);
  presentation_wait (f->presentation, on_ready, &done);
  while (!done)
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpint (presentation_ask (f->presentation, NULL), ==, PRESENTATION_READY);
  mount_config_unref (config);
  g_free (text);
}

static void
set_up (Fixture *f, gconstpointer more)
{
  file_roots_set ((gchar *[]) { (gchar *) g_getenv ("WEIR_DATA"), NULL });
  f->set = stage_set_load_usual (NULL, NULL);
  f->context = (MountContext) { graph_new (), &outlet, NULL, &title_outlet,
    g_object_new (G_TYPE_OBJECT, NULL), close_readers, NULL, TRUE };
  f->mounts = mounts_new (&f->context);
  use_clip (f, more ? more : "");
}

static gboolean
is_closed (gpointer unused)
{
  return upstream_n_closing () == 0;
}

// GStreamer frees the elements of a stage on another thread, and its node after them.
static gboolean
is_empty (gpointer graph)
{
  GPtrArray *nodes = graph_dup_nodes (graph);
  const gboolean empty = nodes->len == 0;

  g_ptr_array_unref (nodes);
  return empty;
}

static void
tear_down (Fixture *f, gconstpointer unused)
{
  Mount *mount = mounts_get (f->mounts, "/cam");

  presentation_leave (f->presentation);
  mount_stop (mount);
  mount_unref (mount);
  g_assert_true (main_loop_wait (is_closed, NULL, 4000));
  mounts_free (f->mounts);
  main_loop_drain ();
  g_assert_true (main_loop_wait (is_empty, f->context.graph, 4000));
  graph_free (f->context.graph);
  g_object_unref (f->context.title_data);
  stage_set_unref (f->set);
}

// ---- a reader without WebRTC ----

static GSocket *
open_socket (guint16 *port)
{
  GInetAddress *host = g_inet_address_new_loopback (G_SOCKET_FAMILY_IPV4);
  GSocketAddress *address = g_inet_socket_address_new (host, 0);
  GSocket *self =
      g_socket_new (G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_DATAGRAM, G_SOCKET_PROTOCOL_UDP, NULL);

  g_assert_true (g_socket_bind (self, address, FALSE, NULL));
  g_object_unref (address);
  g_object_unref (host);
  address = g_socket_get_local_address (self, NULL);
  *port = g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (address));
  g_object_unref (address);
  g_socket_set_timeout (self, 0);
  g_socket_set_blocking (self, FALSE);
  return self;
}

typedef struct {
  guint n, n_key, n_sets;
  guint16 seq;
  guint32 timestamp, sets_at;
} Got;

// Parameter sets come with each keyframe, and only there.
static void
check_picture (const guint8 *payload, gsize len, guint32 timestamp, Got *got)
{
  WeirLayers layers = { .codec = WEIR_CODEC_H264 };
  WeirLayer layer;

  g_assert_true (weir_layers_read (&layers, payload, len, &layer));
  if (layer.parameters)
    got->sets_at = timestamp;
  got->n_sets += layer.parameters;
  if (!layer.keyframe)
    return;
  got->n_key++;
  g_assert_cmpuint (got->sets_at, ==, timestamp);
  g_assert_cmpuint (got->n_sets, ==, got->n_key);
}

// Reads what has come of a track.
static void
read_packets (GSocket *socket, gboolean is_video, Got *got)
{
  guint8 packet[2000];
  gssize len;
  WeirRtp rtp;

  while ((len = g_socket_receive (socket, (gchar *) packet, sizeof packet, NULL, NULL)) > 0) {
    if (weir_rtp_is_rtcp (packet, (gsize) len))
      continue;
    g_assert_cmpint (weir_rtp_parse (packet, (gsize) len, &rtp), ==, 0);
    g_assert_cmpuint (rtp.payload_offset, ==, WEIR_RTP_HEADER);
    g_assert_cmpuint (rtp.payload_length, <=, WEIR_FIT_PAYLOAD);
    if (got->n > 0)
      g_assert_cmpint ((gint16) (rtp.seq - got->seq), ==, 1);
    if (is_video)
      check_picture (packet + rtp.payload_offset, rtp.payload_length, rtp.timestamp, got);
    got->seq = rtp.seq;
    got->timestamp = rtp.timestamp;
    got->n++;
  }
}

// Serves a reader until it has got PACKETS packets of each track, and a keyframe.
static void
receive (WebrtcStream *stream, Got got[2])
{
  const guint n = webrtc_stream_n_tracks (stream);
  GSocket *sockets[2] = { NULL };
  guint16 ports[2];
  gboolean complete = FALSE;

  for (guint i = 0; i < n; i++) {
    sockets[i] = open_socket (&ports[i]);
    g_signal_emit_by_name (
        webrtc_stream_get_track (stream, i)->sink, "add", "127.0.0.1", (gint) ports[i]);
  }
  while (!complete) {
    complete = TRUE;
    g_main_context_iteration (NULL, FALSE);
    for (guint i = 0; i < n; i++) {
      const gboolean is_video = webrtc_stream_get_track (stream, i)->is_video;

      read_packets (sockets[i], is_video, &got[i]);
      complete &= got[i].n >= PACKETS && (got[i].n_key > 0 || !is_video);
    }
    g_usleep (1000);
  }
  for (guint i = 0; i < n; i++) {
    g_signal_emit_by_name (
        webrtc_stream_get_track (stream, i)->sink, "remove", "127.0.0.1", (gint) ports[i]);
    g_object_unref (sockets[i]);
  }
}

static void
drop (WebrtcStream *stream)
{
  webrtc_stream_unref (stream);
  main_loop_drain ();
}

// ---- cases ----

static void
aac_becomes_opus (Fixture *f, gconstpointer unused)
{
  GError *error = NULL;
  WebrtcStream *stream =
      webrtc_stream_get (f->presentation, WEBRTC_H264 | WEBRTC_OPUS, NULL, NULL, &error);
  Got got[2] = { 0 };
  const WebrtcTrack *track;

  g_assert_no_error (error);
  g_assert_cmpuint (webrtc_stream_n_tracks (stream), ==, 2);
  g_assert_null (webrtc_stream_dup_left_out (stream));
  track = webrtc_stream_get_track (stream, 0);
  g_assert_cmpstr (track->encoding, ==, "H264");
  g_assert_true (g_str_has_prefix (track->fmtp, "profile-level-id=4d"));
  track = webrtc_stream_get_track (stream, 1);
  g_assert_cmpstr (track->encoding, ==, "OPUS");
  receive (stream, got);
  for (guint i = 0; i < WEIR_FIT_N_RESULTS; i++)
    g_assert_true ((webrtc_track_get_left_out (i) > 0) == (i == WEIR_FIT_NEEDLESS));
  drop (stream);
}

// The reports of both tracks belong to one clock, and to the times of their packets.
static void
tracks_have_one_clock (Fixture *f, gconstpointer unused)
{
  WebrtcStream *stream =
      webrtc_stream_get (f->presentation, WEBRTC_H264 | WEBRTC_OPUS, NULL, NULL, NULL);
  Got got[2] = { 0 };
  guint64 ntp[2], later;
  guint32 rtp[2], rtp_later;
  gint64 now;

  // The stage that makes the sound has not begun.
  g_assert_false (webrtc_stream_get_clock (stream, 1, clock_now (), &rtp[1], &ntp[1]));
  receive (stream, got);
  now = clock_now ();
  for (guint i = 0; i < 2; i++)
    g_assert_true (webrtc_stream_get_clock (stream, i, now, &rtp[i], &ntp[i]));
  g_assert_cmpint (ABS (weir_ntp_minus (ntp[0], ntp[1])), <, GST_SECOND);
  g_assert_cmpint (ABS (weir_ntp_to_unix (ntp[0]) - g_get_real_time () * 1000), <, 3 * GST_SECOND);
  g_assert_cmpint (ABS ((gint32) (rtp[0] - got[0].timestamp)), <, 90000);
  g_assert_cmpint (ABS ((gint32) (rtp[1] - got[1].timestamp)), <, 48000);
  g_assert_true (webrtc_stream_get_clock (stream, 1, now + GST_SECOND, &rtp_later, &later));
  g_assert_cmpint (weir_ntp_minus (later, ntp[1]) / (gint64) GST_MSECOND, ==,
      (gint64) (guint32) (rtp_later - rtp[1]) / 48);
  drop (stream);
}

static void
readers_with_the_same_tracks_have_one_stream (Fixture *f, gconstpointer unused)
{
  const guint32 all = WEBRTC_VIDEO | WEBRTC_AUDIO;
  WebrtcStream *one =
      webrtc_stream_get (f->presentation, WEBRTC_H264 | WEBRTC_OPUS, NULL, NULL, NULL);
  WebrtcStream *same = webrtc_stream_get (f->presentation, all, NULL, NULL, NULL);
  WebrtcStream *mute = webrtc_stream_get (f->presentation, WEBRTC_H264, NULL, NULL, NULL);
  WebrtcStream *other;
  gchar *left_out;

  g_assert_true (one == same);
  g_assert_true (one != mute);
  g_assert_cmpuint (webrtc_stream_n_tracks (mute), ==, 1);
  left_out = webrtc_stream_dup_left_out (mute);
  g_assert_nonnull (strstr (left_out, "the reader offers no audio"));
  g_free (left_out);
  drop (one);
  other = webrtc_stream_get (f->presentation, all, NULL, NULL, NULL);
  g_assert_true (other == same);
  drop (other);
  drop (same);
  drop (mute);
}

#define NO_LINGER ", \"linger\": \"0s\""

static gpointer
get_stream (gpointer presentation)
{
  return webrtc_stream_get (presentation, WEBRTC_H264 | WEBRTC_OPUS, NULL, NULL, NULL);
}

// Readers that wait for the same start ask from several threads.
static void
readers_that_begin_at_once_have_one_stream (Fixture *f, gconstpointer unused)
{
  for (guint i = 0; i < 10; i++) {
    GThread *threads[2];
    WebrtcStream *streams[2];

    for (guint j = 0; j < 2; j++)
      threads[j] = g_thread_new ("reader", get_stream, f->presentation);
    for (guint j = 0; j < 2; j++)
      streams[j] = g_thread_join (threads[j]);
    g_assert_nonnull (streams[0]);
    g_assert_true (streams[0] == streams[1]);
    drop (streams[0]);
    g_assert_false (webrtc_stream_has_ended (streams[1]));
    g_assert_true (get_stream (f->presentation) == streams[1]);
    drop (streams[1]);
    drop (streams[1]);
  }
}

static gpointer
unref_stream (gpointer stream)
{
  webrtc_stream_unref (stream);
  return NULL;
}

// The stream would end in the turn in which the main thread learns that another reader has left.
static void
a_stream_ends_once (Fixture *f, gconstpointer unused)
{
  Got got[2] = { 0 };
  WebrtcStream *stream = get_stream (f->presentation);

  webrtc_stream_unref (stream);
  g_assert_true (get_stream (f->presentation) == stream);
  g_thread_join (g_thread_new ("reader", unref_stream, stream));
  main_loop_drain ();
  stream = get_stream (f->presentation);
  receive (stream, got);
  drop (stream);
}

static void
what_does_not_fit_is_an_error (Fixture *f, gconstpointer unused)
{
  static const guint32 offers[] = { WEBRTC_VP8 | WEBRTC_OPUS, WEBRTC_PCMU, 0 };

  for (guint i = 0; i < G_N_ELEMENTS (offers); i++) {
    GError *error = NULL;

    g_assert_null (webrtc_stream_get (f->presentation, offers[i], NULL, NULL, &error));
    g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED);
    g_assert_nonnull (strstr (error->message, "H264, MPEG4-GENERIC"));
    if (i == 0)
      g_assert_nonnull (strstr (error->message, "offers VP8, OPUS"));
    g_error_free (error);
  }
}

static void
keyframes_are_asked_for_unless_one_has_just_left (Fixture *f, gconstpointer unused)
{
  WebrtcStream *stream = webrtc_stream_get (f->presentation, WEBRTC_H264, NULL, NULL, NULL);
  Got got[2] = { 0 };
  gint64 now = clock_now ();

  // The stream began with a keyframe, which came before it.
  g_assert_cmpint (webrtc_stream_ask_key (stream, 0, now + (gint64) GST_SECOND), ==, 0);
  g_assert_cmpint (webrtc_stream_ask_key (stream, 1, now), ==, 0); // no such track
  receive (stream, got);
  // When the last one left is not known here, but it was between these times.
  for (gint64 at = clock_now (), left = 0; left == 0; at -= 100 * GST_MSECOND) {
    left = webrtc_stream_ask_key (stream, 0, at);
    g_assert_cmpint (at, >, now - 5 * (gint64) GST_SECOND);
    g_assert_cmpint (left, <=, at);
  }
  drop (stream);
}

#define RENDITIONS                                                                                 \
  ", \"choices\": {\"transcode\": [\"size\"]}, \"renditions\": [\"layers=0.0.*\", "                \
  "\"size=320x180\"]"

static void
a_rendition_may_fit (Fixture *f, gconstpointer unused)
{
  WeirLayerSet layers;
  gchar *choices =
      webrtc_choice_find_rendition (f->presentation, WEBRTC_H264 | WEBRTC_OPUS, &layers);

  g_assert_cmpstr (choices, ==, "size=320x180");
  g_assert_true (weir_layer_set_equal (layers, WEIR_LAYER_SET_ALL));
  g_assert_null (webrtc_choice_find_rendition (f->presentation, WEBRTC_VP8 | WEBRTC_OPUS, &layers));
  g_free (choices);
}

int
main (int argc, char **argv)
{
  int status;

  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_main_context_acquire (NULL); // as the main loop does, so that other threads leave it its work
  g_timeout_add_seconds (PATIENCE_S * 5, on_late, NULL);
#define ADD(test) g_test_add ("/webrtc-stream/" #test, Fixture, NULL, set_up, test, tear_down)
  ADD (aac_becomes_opus);
  ADD (tracks_have_one_clock);
  ADD (readers_with_the_same_tracks_have_one_stream);
  g_test_add ("/webrtc-stream/readers_that_begin_at_once_have_one_stream", Fixture, NO_LINGER,
      set_up, readers_that_begin_at_once_have_one_stream, tear_down);
  g_test_add ("/webrtc-stream/a_stream_ends_once", Fixture, NO_LINGER, set_up, a_stream_ends_once,
      tear_down);
  ADD (what_does_not_fit_is_an_error);
  ADD (keyframes_are_asked_for_unless_one_has_just_left);
  if (element_is_there ("openh264enc"))
    g_test_add ("/webrtc-stream/a_rendition_may_fit", Fixture, RENDITIONS, set_up,
        a_rendition_may_fit, tear_down);
  status = g_test_run ();
  g_main_context_release (NULL);
  gst_deinit ();
  return status;
}
