// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/media.h"

#include "base/clock.h"
#include "base/files_left.h"
#include "base/log.h"
#include "base/threads.h"
#include "outlets/rtsp/kernel_path.h"
#include "outlets/rtsp/media_feeds.h"
#include "outlets/rtsp/media_loop.h"
#include "outlets/rtsp/timeshift.h"
#include "relay/feed.h"
#include "relay/relay_caps.h"
#include "weir-rtsp.h"

#include <gst/base/gstbasesink.h>

// Medias that are opened at the same time; each needs a few threads meanwhile.
#define OPENERS 4

// How long media of a stream that runs waits for a keyframe, so that its first reader begins with a
// picture, and how often it looks for one.
#define PICTURE_PATIENCE (2 * GST_SECOND)
#define PICTURE_MS 10

// The window of a stored title's session is this much longer than `interval`: readers may join
// until the interval ends, and PLAY a little later.
#define SESSION_SLACK_MS 5000

typedef struct {
  GstRTSPMediaFactory parent;
  LiveMedia *live;
  gboolean ipv6;
} MediaFactory;

typedef struct {
  GstRTSPMediaFactoryClass parent_class;
} MediaFactoryClass;

GType media_factory_get_type (void);
G_DEFINE_TYPE (MediaFactory, media_factory, GST_TYPE_RTSP_MEDIA_FACTORY)

static Presentation *
get_presentation (gpointer factory)
{
  return live_media_get_presentation (((MediaFactory *) factory)->live);
}

// Reports whether a client's request is being handled in this thread. Requests only use media that
// is ready: waiting for media would block all clients of the thread.
static gboolean
is_request (void)
{
  return gst_rtsp_context_get_current () != NULL;
}

static gchar *
media_factory_gen_key (GstRTSPMediaFactory *factory, const GstRTSPUrl *url)
{
  return live_media_dup_key (((MediaFactory *) factory)->live, is_request ());
}

// Reports whether gst-rtsp-server's own media serves the presentation.
static gboolean
wants_elements (gpointer factory)
{
  MountConfig *config = presentation_dup_config (get_presentation (factory));
  gboolean wants = config->fan_out == MOUNT_FAN_OUT_ELEMENTS;

  mount_config_unref (config);
  return wants;
}

static gboolean
is_relay_media (GstRTSPMedia *media)
{
  return G_TYPE_CHECK_INSTANCE_TYPE (media, WEIR_TYPE_RELAY_MEDIA);
}

static GstRTSPMedia *
media_factory_construct (GstRTSPMediaFactory *factory, const GstRTSPUrl *url)
{
  if (is_request ())
    return NULL;
  gst_rtsp_media_factory_set_media_gtype (
      factory, wants_elements (factory) ? GST_TYPE_RTSP_MEDIA : WEIR_TYPE_RELAY_MEDIA);
  return GST_RTSP_MEDIA_FACTORY_CLASS (media_factory_parent_class)->construct (factory, url);
}

static GstElement *
media_factory_create_element (GstRTSPMediaFactory *factory, const GstRTSPUrl *url)
{
  Relay *relay = presentation_get_relay (get_presentation (factory));
  guint n = relay_n_tracks (relay);
  GstElement *bin;

  if (n == 0)
    return NULL;
  bin = gst_bin_new (NULL);
  for (guint i = 0; i < n; i++) {
    g_autoptr (GstCaps) caps = relay_dup_caps (relay, i);
    g_autofree gchar *feed_name = g_strdup_printf ("feed%u", i);
    g_autofree gchar *pay_name = g_strdup_printf ("pay%u", i);
    GstElement *feed = caps ? (GstElement *) feed_new (caps, FALSE) : NULL;
    GstElement *pay = gst_element_factory_make ("rtprelaypay", pay_name);

    if (feed && pay) {
      gst_object_set_name (GST_OBJECT (feed), feed_name);
      gst_bin_add_many (GST_BIN (bin), feed, pay, NULL);
      gst_element_link (feed, pay);
    }
  }
  return bin;
}

// ---- the configuration of sinks ----

static void
configure_sink (GstElement *sink, Presentation *presentation, const MountConfig *config)
{
  gst_util_set_object_arg (G_OBJECT (sink), "join", config->join);
  gst_util_set_object_arg (G_OBJECT (sink), "catch-up", config->catch_up);
  gst_util_set_object_arg (G_OBJECT (sink), "drop-policy", config->drop_policy);
  g_object_set (sink, "priority", config->priority, "spread",
      (guint64) config->spread_ms * GST_MSECOND, "max-pacing-rate", config->max_pacing_rate,
      "buffer-size", (gint) config->buffer_size.bytes, NULL);
  gst_util_set_object_arg (G_OBJECT (sink), "kernel", kernel_path_get ());
  timeshift_configure_sink (sink, config);
  if (presentation_get_instance (presentation))
    g_object_set (sink, "delay", G_MAXUINT64, "window-time",
        (guint64) (config->interval_ms + SESSION_SLACK_MS) * GST_MSECOND, NULL);
}

static void
configure_media (gpointer media, Presentation *presentation)
{
  MountConfig *config = presentation_dup_config (presentation), *now;
  gboolean same;

  do {
    for (guint i = 0; i < gst_rtsp_media_n_streams (media); i++) {
      GstElement *sink = weir_stream_find_sink (gst_rtsp_media_get_stream (media, i));

      if (sink)
        configure_sink (sink, presentation, config);
      g_clear_object (&sink);
    }
    // Another thread may have applied another configuration meanwhile.
    now = presentation_dup_config (presentation);
    same = now == config;
    mount_config_unref (config);
    config = now;
  } while (!same);
  mount_config_unref (config);
}

// ---- media ----

static void
release_media (gpointer media)
{
  gst_rtsp_media_unprepare (media);
  g_object_unref (media);
}

static void
keep_media (GstRTSPMedia *media, LiveMedia *live)
{
  // On prepared media this counts one more user.
  gst_rtsp_media_prepare (media, NULL);
  if (!live_media_keep (live, g_object_ref (media)))
    release_media (media);
}

static void
warn_without_ports (GstRTSPMedia *media, Presentation *presentation)
{
  static LogLimit limit = { .burst = 10, .interval_ms = 10 * 1000 };

  if (weir_stream_is_tcp_only (gst_rtsp_media_get_stream (media, 0)))
    log_event_limited (&limit,
        "mount %s: no free UDP ports for its tracks: RTSP readers get it over TCP only, until it "
        "is "
        "opened again",
        presentation_get_label (presentation));
}

static void
on_prepared (GstRTSPMedia *media, LiveMedia *live)
{
  Presentation *presentation = live_media_get_presentation (live);

  if (!presentation_follows (presentation))
    media_feeds_attach (media, presentation_get_relay (presentation));
  // gst-rtsp-server blocks streams until the first PLAY. That would block the upstream's thread,
  // and the first reader would get packets from the time of its DESCRIBE.
  for (guint i = 0; i < gst_rtsp_media_n_streams (media); i++)
    gst_rtsp_stream_set_blocked (gst_rtsp_media_get_stream (media, i), FALSE);
  warn_without_ports (media, presentation);
}

static void
on_unprepared (GstRTSPMedia *media, LiveMedia *live)
{
  media_feeds_detach (media, presentation_get_relay (live_media_get_presentation (live)));
}

// ---- media of one reader ----

#define OWN "weir-own-presentation"

Presentation *
media_get_own (GstRTSPMedia *media)
{
  return g_object_get_data (G_OBJECT (media), OWN);
}

// Returns RTP-Info of the packets that wait for the reader.
static gboolean
get_own_rtp_info (GstRTSPStream *stream, guint *seq, guint *rtptime, gpointer relay)
{
  guint16 next;

  if (!relay_get_waiting (relay, gst_rtsp_stream_get_index (stream), &next, rtptime))
    return FALSE;
  *seq = next;
  return TRUE;
}

static void
unref_presentation (gpointer presentation)
{
  presentation_unref (presentation);
}

static void
on_element_added (GstBin *pipeline, GstBin *bin, GstElement *element, LiveMedia *live)
{
  Presentation *presentation = live_media_get_presentation (live);

  if (!GST_IS_BASE_SINK (element))
    return;
  // The sinks for readers that fanoutsink cannot serve lack these properties.
  if (g_object_class_find_property (G_OBJECT_GET_CLASS (element), "catch-up")) {
    g_autoptr (MountConfig) config = presentation_dup_config (presentation);

    configure_sink (element, presentation, config);
  }
  // Packets are sent as they arrive. Their timestamps are arrival times, so waiting for them, or
  // for the processing deadline, would only add delay.
  gst_base_sink_set_sync (GST_BASE_SINK (element), FALSE);
  // A sink that is added must not take the pipeline, and so all readers, back to PAUSED.
  gst_base_sink_set_async_enabled (GST_BASE_SINK (element), FALSE);
  gst_base_sink_set_processing_deadline (GST_BASE_SINK (element), 0);
}

static void
unref_live (gpointer live, GClosure *closure)
{
  live_media_unref (live);
}

// Connects a handler that holds a reference to `live`. g_signal_connect_object() would not be safe,
// because media and factory may be finalized in two threads at once.
static void
listen_to (gpointer instance, const gchar *signal, GCallback handler, LiveMedia *live)
{
  g_signal_connect_data (instance, signal, handler, live_media_ref (live), unref_live, 0);
}

static GstElement *
media_factory_create_pipeline (GstRTSPMediaFactory *factory, GstRTSPMedia *media)
{
  LiveMedia *live = ((MediaFactory *) factory)->live;
  GstElement *pipeline =
      GST_RTSP_MEDIA_FACTORY_CLASS (media_factory_parent_class)->create_pipeline (factory, media);
  g_autoptr (MountConfig) config = NULL;

  if (!pipeline)
    return NULL;
  listen_to (pipeline, "deep-element-added", G_CALLBACK (on_element_added), live);
  config = presentation_dup_config (live_media_get_presentation (live));
  timeshift_watch (pipeline, config);
  return pipeline;
}

// Returns RTP-Info from the relay. gst-rtsp-server's own has zeros for a track without packets yet.
static gboolean
get_rtp_info (GstRTSPStream *stream, guint *seq, guint *rtptime, gpointer relay)
{
  guint16 next;

  if (!relay_get_rtp_info (relay, gst_rtsp_stream_get_index (stream), &next, rtptime))
    return FALSE;
  *seq = next;
  return TRUE;
}

// Sender reports carry the upstream's clock.
static gboolean
get_ntp (GstRTSPStream *stream, guint timestamp, guint64 *ntp, gpointer relay)
{
  return relay_get_ntp_at (relay, gst_rtsp_stream_get_index (stream), timestamp, ntp);
}

static void
media_factory_configure (GstRTSPMediaFactory *factory, GstRTSPMedia *media)
{
  LiveMedia *live = ((MediaFactory *) factory)->live;
  Presentation *own = live_media_get_presentation (live);
  Relay *relay = presentation_get_relay (own);

  if (presentation_follows (own))
    g_object_set_data_full (G_OBJECT (media), OWN, presentation_ref (own), unref_presentation);
  GST_RTSP_MEDIA_FACTORY_CLASS (media_factory_parent_class)->configure (factory, media);
  weir_media_set_rtp_info_func (media, presentation_follows (own) ? get_own_rtp_info : get_rtp_info,
      relay_ref (relay), (GDestroyNotify) relay_unref);
  if (is_relay_media (media)) {
    g_object_set (media, "ipv6", ((MediaFactory *) factory)->ipv6, NULL);
    weir_relay_media_set_ntp_func (media, get_ntp, relay_ref (relay), (GDestroyNotify) relay_unref);
  }
  listen_to (media, "prepared", G_CALLBACK (on_prepared), live);
  listen_to (media, "unprepared", G_CALLBACK (on_unprepared), live);
}

// Since 1.24 gst_rtsp_media_factory_construct() returns locked media.
static GstRTSPMedia *
construct_unlocked (GstRTSPMediaFactory *factory)
{
  guint major, minor, micro, nano;
  GstRTSPMedia *media;
  GstRTSPUrl *url;

  gst_version (&major, &minor, &micro, &nano);
  gst_rtsp_url_parse ("rtsp://localhost/", &url); // the factory ignores the URL
  media = gst_rtsp_media_factory_construct (factory, url);
  if (media && (major > 1 || minor >= 23))
    gst_rtsp_media_unlock (media);
  gst_rtsp_url_free (url);
  return media;
}

// Returns the reason why the media cannot be prepared (transfer full), or NULL. Without one of
// these caps fields the payloader would wait for a packet, but no packet arrives before the media
// is prepared.
static gchar *
find_problem (Relay *relay)
{
  static const gchar *const needed[] = { "media", "payload", "clock-rate", "encoding-name",
    "ssrc" };
  gchar *problem = relay_n_tracks (relay) == 0 ? g_strdup ("it has no tracks") : NULL;

  for (guint i = 0; i < relay_n_tracks (relay) && !problem; i++) {
    g_autoptr (GstCaps) caps = relay_dup_caps (relay, i);

    for (guint j = 0; caps && j < G_N_ELEMENTS (needed) && !problem; j++) {
      if (!gst_structure_has_field (gst_caps_get_structure (caps, 0), needed[j]))
        problem = g_strdup_printf ("the upstream's track %u has no %s", i, needed[j]);
    }
  }
  return problem;
}

// ---- the picture that the first reader begins with ----

typedef struct {
  GstRTSPMedia *media; // prepared
  LiveMedia *live;
  gint64 until; // when it is opened without a keyframe, ns; 0: at once
} Opening;

// Reports whether the sink of a track with keyframes has one.
static gboolean
has_picture (GstRTSPMedia *media, Relay *relay, guint track)
{
  g_autoptr (GstCaps) caps = relay_dup_caps (relay, track);
  GstElement *sink = weir_stream_find_sink (gst_rtsp_media_get_stream (media, track));
  WeirCodec codec = caps ? relay_caps_get_codec (caps) : WEIR_CODEC_OPAQUE;
  gboolean has = codec == WEIR_CODEC_OPAQUE || codec == WEIR_CODEC_AUDIO || !sink;
  GstBufferList *list = NULL;

  if (!has)
    g_signal_emit_by_name (sink, "get-packets", -1, 1, &list);
  has |= list && gst_buffer_list_length (list) > 0;
  gst_clear_buffer_list (&list);
  g_clear_object (&sink);
  return has;
}

static gboolean
has_pictures (GstRTSPMedia *media, Relay *relay)
{
  gboolean has = TRUE;

  for (guint i = 0; i < gst_rtsp_media_n_streams (media) && has; i++)
    has = has_picture (media, relay, i);
  return has;
}

static gboolean
look_for_pictures (gpointer data)
{
  Opening *self = data;
  Presentation *presentation = live_media_get_presentation (self->live);

  if (clock_now () < self->until
      && !has_pictures (self->media, presentation_get_relay (presentation)))
    return G_SOURCE_CONTINUE;
  keep_media (self->media, self->live);
  configure_media (self->media, presentation); // the configuration may have changed meanwhile
  gst_rtsp_media_unprepare (self->media);
  live_media_opened (self->live, NULL);
  return G_SOURCE_REMOVE;
}

static gboolean
begins_at_keyframes (LiveMedia *live)
{
  g_autoptr (MountConfig) config = presentation_dup_config (live_media_get_presentation (live));

  return g_str_equal (config->join, "keyframe");
}

static void
opening_free (gpointer data)
{
  Opening *self = data;

  g_object_unref (self->media);
  live_media_unref (self->live);
  g_free (self);
}

// Prepares media, which the presentation then keeps. Returns the reason of a failure (transfer
// full), or NULL.
static gchar *
open_media (GstRTSPMediaFactory *factory)
{
  LiveMedia *live = ((MediaFactory *) factory)->live;
  Relay *relay = presentation_get_relay (get_presentation (factory));
  gboolean begins = relay_holds_beginning (relay) || !begins_at_keyframes (live);
  gchar *problem = find_problem (relay);
  GstRTSPMedia *media = problem ? NULL : construct_unlocked (factory);
  Opening *opening;

  if (!media)
    return problem ? problem : g_strdup ("cannot make its media");
  // A relay media has a thread, which all of them share.
  if (!gst_rtsp_media_prepare (media, is_relay_media (media) ? NULL : media_loop_new ())) {
    g_object_unref (media);
    return g_strdup ("cannot prepare its media");
  }
  opening = g_new (Opening, 1);
  *opening =
      (Opening) { media, live_media_ref (live), begins ? 0 : clock_now () + PICTURE_PATIENCE };
  if (look_for_pictures (opening) == G_SOURCE_REMOVE)
    opening_free (opening);
  else
    g_timeout_add_full (G_PRIORITY_DEFAULT, PICTURE_MS, look_for_pictures, opening, opening_free);
  return NULL;
}

static void
open_in_thread (gpointer factory, gpointer unused)
{
  g_autofree gchar *problem = NULL;

  thread_set_name ("media-opener");
  if (files_promise (FILES_FOR_MEDIA)) {
    problem = open_media (factory);
    files_end_promise (FILES_FOR_MEDIA);
  } else {
    problem = g_strdup (FILES_PROBLEM);
  }
  if (problem)
    live_media_opened (((MediaFactory *) factory)->live, problem);
  g_object_unref (factory);
  thread_set_name (THREAD_IDLE);
}

static void
open_later (gpointer factory)
{
  static gsize openers;

  if (g_once_init_enter (&openers))
    g_once_init_leave (
        &openers, (gsize) g_thread_pool_new (open_in_thread, NULL, OPENERS, FALSE, NULL));
  g_thread_pool_push ((GThreadPool *) openers, g_object_ref (factory), NULL);
}

static const LiveMediaOps live_ops = { open_later, configure_media, release_media };

// ---- the factory ----

static void
media_factory_finalize (GObject *object)
{
  live_media_unref (((MediaFactory *) object)->live);
  G_OBJECT_CLASS (media_factory_parent_class)->finalize (object);
}

static void
media_factory_init (MediaFactory *self)
{
}

static void
media_factory_class_init (MediaFactoryClass *klass)
{
  GstRTSPMediaFactoryClass *factory_class = GST_RTSP_MEDIA_FACTORY_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = media_factory_finalize;
  factory_class->gen_key = media_factory_gen_key;
  factory_class->construct = media_factory_construct;
  factory_class->create_element = media_factory_create_element;
  factory_class->create_pipeline = media_factory_create_pipeline;
  factory_class->configure = media_factory_configure;
}

GstRTSPMediaFactory *
media_factory_new (Presentation *presentation, gboolean ipv6)
{
  MediaFactory *self = g_object_new (media_factory_get_type (), NULL);
  GstRTSPMediaFactory *factory = GST_RTSP_MEDIA_FACTORY (self);

  self->live = live_media_new (presentation, &live_ops, self);
  self->ipv6 = ipv6;
  gst_rtsp_media_factory_set_shared (factory, TRUE);
  // The sender reports carry the upstream's clock, not the proxy's.
  gst_rtsp_media_factory_set_publish_clock_mode (factory, GST_RTSP_PUBLISH_CLOCK_MODE_NONE);
  // No multicast, because any reader could choose the group and the TTL.
  gst_rtsp_media_factory_set_protocols (
      factory, GST_RTSP_LOWER_TRANS_UDP | GST_RTSP_LOWER_TRANS_TCP);
  return factory;
}

void
media_factory_stop (GstRTSPMediaFactory *factory)
{
  live_media_stop (((MediaFactory *) factory)->live);
}

LiveMedia *
media_find_live (GstRTSPMountPoints *points, const gchar *path)
{
  GstRTSPMediaFactory *factory = gst_rtsp_mount_points_match (points, path, NULL);
  LiveMedia *live = factory && G_TYPE_CHECK_INSTANCE_TYPE (factory, media_factory_get_type ())
                        ? live_media_ref (((MediaFactory *) factory)->live)
                        : NULL;

  g_clear_object (&factory);
  return live;
}
