// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * SECTION:element-fanoutsink
 * @title: fanoutsink
 * @short_description: serves one stream to many readers over UDP and TCP
 *
 * It stands wherever `multiudpsink` stands: it has that element's properties, action signals and
 * signals, with the same types and defaults. It differs in how it sends. The stream goes into a
 * window, a packet once; each reader has a place of its own in it, and gets a frame in as few sends
 * as possible, segmented by the kernel (UDP_SEGMENT), which costs a fraction of a send for each
 * packet. Where the kernel or the path refuses that, it goes on with one message a packet without
 * losing any; see #WeirFanoutSink:gso.
 *
 * A frame is sent when the RTP marker bit ends it, when 64 packets of it are there, or when its
 * first packet has waited #WeirFanoutSink:max-coalesce. RTCP, and what is not RTP, does not wait; a
 * buffer list of such packets stays together.
 *
 * Readers over TCP, or any other stream socket, are added by #WeirFanoutSink::add-socket: it serves
 * where `multisocketsink` and `multifdsink` do, with the framing of RTSP, RFC 4571, or none.
 *
 * With #WeirFanoutSink:join `keyframe` a new reader begins at the newest keyframe, gets what came
 * since then at #WeirFanoutSink:catch-up-rate times the stream's speed, and runs at the live edge
 * from then on. Where the window has none, one is asked for upstream (`GstForceKeyUnit`), once a
 * second until it comes.
 *
 * A slow reader costs nobody anything. Over TCP it is thinned in steps while it lags: from 250 ms
 * on to the base layer, from 500 ms to frames that others need, from 1 s to keyframes; after 10 s
 * without taking a byte it is closed. One that falls out of the window goes on at the next keyframe
 * (#WeirFanoutSink:drop-policy). A UDP reader whose socket has no room waits for it, up to a
 * second while the socket drains, else for 100 ms.
 *
 * Of a stream with layers (H.264 SVC, temporal layers of H.264 and H.265, VP8, VP9, AV1) each
 * reader gets those that #WeirFanoutSink::set-layers says. They are read from the packets, or from
 * the meta that `svclayerfilter mode=tag` puts on them. A frame is made once for each set of layers
 * in use, as soon as it is whole.
 *
 * A reader may be at a place of its own behind the live edge (#WeirFanoutSink::set-delay), and may
 * be paused there (#WeirFanoutSink::pause): a thousand readers at a thousand delays are still
 * cursors in one window.
 *
 * Threads: the streaming thread copies packets into the window, never waits for a reader, and
 * serves up to #WeirFanoutSink:inline-readers readers itself; a pool of threads that all elements
 * of the process share, one for each processor, serves more. Every packet due to a reader is sent
 * or counted as dropped, with the reason, in `get-stats` and #WeirFanoutSink:fanout-stats. Sends
 * over UDP that fail post a warning with the reader and the system's reason, at most once in 10 s;
 * the stream goes on.
 *
 * EOS goes through when everything is sent, or after 2 s. On the way to READY the element gives
 * what is not sent 50 ms and counts the rest as flushed.
 *
 * A packet's payload is never changed. Sequence numbers and timestamps are, for readers to whom
 * packets were left out on purpose, or who catch up. A packet over 65507 bytes is refused.
 *
 * ## Example launch lines
 * |[
 * gst-launch-1.0 videotestsrc is-live=true ! vp8enc deadline=1 ! rtpvp8pay ! fanoutsink clients=127.0.0.1:5004,127.0.0.1:5006
 * gst-launch-1.0 udpsrc port=5004 caps="application/x-rtp,media=video,clock-rate=90000,encoding-name=VP8" ! rtpvp8depay ! vp8dec ! autovideosink
 * ]|
 *
 * Since: 0.1
 */
#include "config.h"

#include "fanoutsink_private.h"
#include "elementname.h"
#include "keyevent.h"
#include "layers/layercaps.h"
#include "layers/layermeta.h"
#include "sharedworkers.h"

GST_DEBUG_CATEGORY (fanoutsink_debug);
#define GST_CAT_DEFAULT fanoutsink_debug

#define STOP_GRACE (50 * GST_MSECOND)
#define EOS_PATIENCE (2 * GST_SECOND)

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);

G_DEFINE_FINAL_TYPE (WeirFanoutSink, weir_fanout_sink, GST_TYPE_BASE_SINK)
GST_ELEMENT_REGISTER_DEFINE (fanoutsink, "fanoutsink", GST_RANK_NONE, WEIR_TYPE_FANOUT_SINK)

// ---- data: the streaming thread ----

// A reader waits for a key picture: to begin with, or to change its layers.
static void
ask_for_key (WeirFanoutSink *self, gint64 now_ns)
{
  if (!weir_fanout_wants_key (self->fanout, now_ns))
    return;
  GST_DEBUG_OBJECT (self, "asking for a key picture");
  gst_pad_push_event (GST_BASE_SINK_PAD (self), weir_key_event_new (self->n_keys_asked++));
}

// Between weir_fanout_begin() and weir_fanout_end().
static void
take_packet (WeirFanoutSink *self, GstBuffer *buffer, gint64 now_ns)
{
  gsize size = gst_buffer_get_size (buffer);
  const WeirLayerMeta *meta;
  guint8 *room;

  if (size == 0)
    return;
  room = weir_fanout_reserve (self->fanout, size);
  if (!room) {
    if (!self->warned_too_big)
      GST_WARNING_OBJECT (self, "refusing a packet of %" G_GSIZE_FORMAT " bytes, %d is the most",
          size, WEIR_PACKET_MAX);
    self->warned_too_big = TRUE;
    return;
  }
  meta = weir_buffer_get_layer_meta (buffer);
  if (gst_buffer_extract (buffer, 0, room, size) == size)
    weir_fanout_commit_layer (self->fanout, size, meta ? &meta->layer : NULL, now_ns);
  else
    GST_WARNING_OBJECT (self, "could not read %" GST_PTR_FORMAT, buffer);
}

// Where the disk is full, the window is smaller from here on.
static void
look_at_file (WeirFanoutSink *self)
{
  gsize limit;

  if (!self->has_file || self->told_full || (limit = weir_fanout_limit (self->fanout)) == G_MAXSIZE)
    return;
  self->told_full = TRUE;
  GST_WARNING_OBJECT (self, "the disk is full at %" G_GSIZE_FORMAT " bytes", limit);
  gst_element_post_message (
      GST_ELEMENT (self), gst_message_new_element (
                              GST_OBJECT (self), gst_structure_new ("fanout-spill-full", "capacity",
                                                     G_TYPE_UINT64, (guint64) limit, NULL)));
}

// News of readers go to the log. Where sends to some have failed, one is told by name.
static void
tell_failures (WeirFanoutSink *self, gint64 now_ns)
{
  gchar *reader;
  guint n_others;
  gint error;

  if (weir_fanout_has_news (self->fanout, now_ns))
    fanout_news_tell (self);
  if (!weir_fanout_has_failed (self->fanout, now_ns))
    return;
  reader = fanout_readers_take_failed (self, &error, &n_others);
  if (reader && n_others > 0)
    GST_ELEMENT_WARNING (self, RESOURCE, WRITE, ("Sending to a reader fails."),
        ("%s: %s; sending to %u other readers fails too", reader, g_strerror (error), n_others));
  else if (reader)
    GST_ELEMENT_WARNING (self, RESOURCE, WRITE, ("Sending to a reader fails."),
        ("%s: %s", reader, g_strerror (error)));
  g_free (reader);
}

static void
end_packets (WeirFanoutSink *self, gint64 now_ns)
{
  weir_fanout_end (self->fanout, now_ns);
  ask_for_key (self, now_ns);
  look_at_file (self);
  tell_failures (self, now_ns);
}

static GstFlowReturn
weir_fanout_sink_render (GstBaseSink *sink, GstBuffer *buffer)
{
  WeirFanoutSink *self = WEIR_FANOUT_SINK (sink);
  gint64 now_ns = weir_now_ns ();

  if (weir_fanout_begin (self->fanout)) {
    take_packet (self, buffer, now_ns);
    end_packets (self, now_ns);
  }
  return GST_FLOW_OK;
}

static GstFlowReturn
weir_fanout_sink_render_list (GstBaseSink *sink, GstBufferList *list)
{
  WeirFanoutSink *self = WEIR_FANOUT_SINK (sink);
  guint n = gst_buffer_list_length (list);
  gint64 now_ns = weir_now_ns ();

  if (weir_fanout_begin (self->fanout)) {
    for (guint i = 0; i < n; i++)
      take_packet (self, gst_buffer_list_get (list, i), now_ns);
    end_packets (self, now_ns);
  }
  return GST_FLOW_OK;
}

// ---- events ----

static gboolean
weir_fanout_sink_set_caps (GstBaseSink *sink, GstCaps *caps)
{
  WeirFanoutSink *self = WEIR_FANOUT_SINK (sink);
  const GstStructure *s = gst_caps_get_structure (caps, 0);
  WeirCodec codec = WEIR_CODEC_OPAQUE;
  guint8 dependency_id = 0;
  gint clock_rate = 0;

  if (gst_structure_has_name (s, "application/x-rtp")) {
    codec = weir_codec_from_sdp (
        gst_structure_get_string (s, "media"), gst_structure_get_string (s, "encoding-name"));
    dependency_id = layer_caps_dependency_id (caps);
    gst_structure_get_int (s, "clock-rate", &clock_rate);
  }
  weir_fanout_set_clock_rate (self->fanout, (guint32) MAX (clock_rate, 0));
  weir_fanout_set_codec (self->fanout, codec, dependency_id);
  return TRUE;
}

static gboolean
weir_fanout_sink_event (GstBaseSink *sink, GstEvent *event)
{
  WeirFanoutSink *self = WEIR_FANOUT_SINK (sink);

  if (GST_EVENT_TYPE (event) == GST_EVENT_EOS) {
    weir_fanout_drain (self->fanout, weir_now_ns () + (gint64) EOS_PATIENCE);
    tell_failures (self, weir_now_ns ());
  }
  return GST_BASE_SINK_CLASS (weir_fanout_sink_parent_class)->event (sink, event);
}

// ---- start and stop ----

static gboolean
start (WeirFanoutSink *self, const WeirUdpConfig *config, GError **error)
{
  WeirUdpSockets sockets;
  gboolean buffer_short, ok;

  if (!weir_shared_workers ()) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_FAILED, "no thread can be made");
    return FALSE;
  }
  if (self->settings.bounds.bytes < WEIR_WINDOW_BYTES_MIN) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
        "window-bytes=%" G_GSIZE_FORMAT " may not hold a frame; %d is the least",
        self->settings.bounds.bytes, WEIR_WINDOW_BYTES_MIN);
    return FALSE;
  }
  if (!weir_udp_sockets_open (&sockets, config, self->cancellable, &buffer_short, error))
    return FALSE;
  if (buffer_short)
    GST_ELEMENT_WARNING (self, RESOURCE, SETTINGS, (NULL),
        ("The send buffer is smaller than the %d bytes asked (see net.core.wmem_max).",
            config->buffer_size));

  g_mutex_lock (&self->control);
  g_mutex_lock (&self->lock);
  self->sockets = sockets;
  weir_fanout_set (self->fanout, &self->settings);
  g_mutex_unlock (&self->lock);
  ok = fanout_readers_start (self, config, error);
  g_mutex_lock (&self->lock);
  self->started = ok;
  if (!ok)
    weir_udp_sockets_close (&self->sockets, self->close_socket);
  g_mutex_unlock (&self->lock);
  g_mutex_unlock (&self->control);
  return ok;
}

static gboolean
weir_fanout_sink_start (GstBaseSink *sink)
{
  WeirFanoutSink *self = WEIR_FANOUT_SINK (sink);
  WeirUdpConfig config = fanout_properties_get_udp (self);
  GError *err = NULL;
  gboolean ok = start (self, &config, &err);

  if (!ok)
    GST_ELEMENT_ERROR (
        self, RESOURCE, OPEN_WRITE, ("The readers can't be served."), ("%s", err->message));
  g_clear_error (&err);
  fanout_properties_clear_udp (&config);
  self->warned_too_big = FALSE;
  return ok;
}

static gboolean
weir_fanout_sink_stop (GstBaseSink *sink)
{
  WeirFanoutSink *self = WEIR_FANOUT_SINK (sink);
  gboolean close;

  GST_OBJECT_LOCK (self);
  close = self->close_socket;
  GST_OBJECT_UNLOCK (self);

  g_mutex_lock (&self->control);
  g_mutex_lock (&self->lock);
  weir_udp_sockets_close (&self->sockets, close);
  self->started = FALSE;
  g_mutex_unlock (&self->lock);
  g_mutex_unlock (&self->control);
  return TRUE;
}

static gboolean
weir_fanout_sink_unlock (GstBaseSink *sink)
{
  WeirFanoutSink *self = WEIR_FANOUT_SINK (sink);

  g_mutex_lock (&self->lock);
  g_cancellable_cancel (self->cancellable);
  g_mutex_unlock (&self->lock);
  weir_fanout_interrupt (self->fanout, TRUE);
  return TRUE;
}

static gboolean
weir_fanout_sink_unlock_stop (GstBaseSink *sink)
{
  WeirFanoutSink *self = WEIR_FANOUT_SINK (sink);

  weir_fanout_interrupt (self->fanout, FALSE);
  g_mutex_lock (&self->lock);
  g_object_unref (self->cancellable);
  self->cancellable = g_cancellable_new ();
  g_mutex_unlock (&self->lock);
  return TRUE;
}

static gboolean
open_file (WeirFanoutSink *self)
{
  WeirBlockFile *file = NULL;
  gchar *dir;

  GST_OBJECT_LOCK (self);
  dir = g_strdup (self->spill_dir);
  GST_OBJECT_UNLOCK (self);
  if (dir && !(file = weir_block_file_new (dir)))
    GST_ELEMENT_ERROR (
        self, RESOURCE, OPEN_WRITE, ("No file can be made in %s.", dir), GST_ERROR_SYSTEM);
  self->has_file = file != NULL;
  self->told_full = FALSE;
  weir_fanout_set_file (self->fanout, file);
  weir_block_file_unref (file);
  g_free (dir);
  return !dir || self->has_file;
}

static GstStateChangeReturn
weir_fanout_sink_change_state (GstElement *element, GstStateChange transition)
{
  WeirFanoutSink *self = WEIR_FANOUT_SINK (element);
  GstStateChangeReturn ret;

  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED) {
    if (!open_file (self))
      return GST_STATE_CHANGE_FAILURE;
    weir_fanout_start (self->fanout);
  }
  ret = GST_ELEMENT_CLASS (weir_fanout_sink_parent_class)->change_state (element, transition);
  // The last packets, an RTCP BYE among them, get a moment; then they count as flushed.
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) {
    weir_fanout_drain (self->fanout, weir_now_ns () + (gint64) STOP_GRACE);
    weir_fanout_stop (self->fanout);
    weir_fanout_set_file (self->fanout, NULL);
  }
  return ret;
}

// ---- class ----

static void
weir_fanout_sink_init (WeirFanoutSink *self)
{
  g_mutex_init (&self->control);
  g_mutex_init (&self->lock);
  self->cancellable = g_cancellable_new ();
  fanout_properties_init (self);
  self->fanout = weir_fanout_new (weir_shared_workers (), NULL, &self->settings);
  if (!self->fanout)
    g_error ("fanoutsink: no memory"); // as GLib does
  fanout_readers_init (self);
}

static void
weir_fanout_sink_finalize (GObject *object)
{
  WeirFanoutSink *self = WEIR_FANOUT_SINK (object);

  fanout_readers_finalize (self);
  weir_fanout_free (self->fanout);
  fanout_properties_finalize (self);
  g_object_unref (self->cancellable);
  g_mutex_clear (&self->control);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (weir_fanout_sink_parent_class)->finalize (object);
}

static void
weir_fanout_sink_class_init (WeirFanoutSinkClass *klass)
{
  GObjectClass *gobject_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseSinkClass *sink_class = GST_BASE_SINK_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (fanoutsink_debug, "fanoutsink", 0, "One stream to many readers");

  gobject_class->finalize = weir_fanout_sink_finalize;
  element_class->change_state = weir_fanout_sink_change_state;
  sink_class->render = weir_fanout_sink_render;
  sink_class->render_list = weir_fanout_sink_render_list;
  sink_class->set_caps = weir_fanout_sink_set_caps;
  sink_class->event = weir_fanout_sink_event;
  sink_class->start = weir_fanout_sink_start;
  sink_class->stop = weir_fanout_sink_stop;
  sink_class->unlock = weir_fanout_sink_unlock;
  sink_class->unlock_stop = weir_fanout_sink_unlock_stop;

  fanout_properties_install (gobject_class);
  fanout_signals_install (G_TYPE_FROM_CLASS (klass));

  weir_element_class_set_default_name (gobject_class);
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_set_static_metadata (element_class, "Fan-out packet sender", "Sink/Network",
      "Serves one stream to many readers over UDP and TCP, a frame in one send each", "Weir");
}
