// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * SECTION:element-fanoutsink
 * @title: fanoutsink
 * @short_description: serves one stream to many readers over UDP and TCP
 *
 * It replaces `multiudpsink`: it has that element's properties, action signals and signals, with
 * the same types and defaults. The element copies each packet once, into a window. A reader is a
 * position in the window, and gets a frame in as few sends as possible, segmented by the kernel
 * (UDP_SEGMENT). If the kernel or the path refuses a segmented send, the element sends the packets
 * one by one and loses none; see #WeirFanoutSink:gso.
 *
 * The element sends a frame when its last packet (with the RTP marker bit) arrives, when 64 packets
 * of it are there, or when its first packet has waited #WeirFanoutSink:max-coalesce. It sends RTCP
 * and other data at once; a buffer list of such packets stays together.
 *
 * #WeirFanoutSink::add-socket adds readers over TCP or any other stream socket, as
 * `multisocketsink` and `multifdsink` do, with the framing of RTSP, RFC 4571, or none.
 *
 * With #WeirFanoutSink:join `keyframe` a new reader begins at the newest keyframe in the window,
 * gets the packets since then at #WeirFanoutSink:catch-up-rate times the stream's speed, and
 * continues at the live edge. If the window has no keyframe, the element asks upstream for one
 * (`GstForceKeyUnit`), once a second until it arrives.
 *
 * A buffer that has waited elsewhere can say when it arrived, as a #GstReferenceTimestampMeta of
 * `timestamp/x-weir-arrival`, in ns of CLOCK_MONOTONIC. Readers that join catch up with it as if it
 * had come then. Arrivals do not go back, and are not in the future.
 *
 * A slow reader does not affect others. Over TCP the element thins its stream while it lags: from
 * 250 ms on it gets the base layer, from 500 ms on only frames that others need, from 1 s on only
 * keyframes; after 10 s without taking a byte it is closed. A reader that falls out of the window
 * continues at the next keyframe (#WeirFanoutSink:drop-policy). A UDP reader whose socket has no
 * room waits up to 1 s while the socket drains, else 100 ms.
 *
 * In an MPEG transport stream (caps `video/mpegts`) a buffer without the flag DELTA_UNIT is where a
 * reader can begin. Such a buffer starts with the stream's tables.
 *
 * #WeirFanoutSink::set-layers chooses the layers that a reader gets of a layered stream (H.264 SVC,
 * temporal layers of H.264 and H.265, VP8, VP9, AV1). The element reads the layer of a packet from
 * the packet, or from the meta that `svclayerfilter mode=tag` attaches to it. It makes each frame
 * once for each layer set in use, as soon as the frame is complete.
 *
 * #WeirFanoutSink::set-delay puts a reader behind the live edge, #WeirFanoutSink::pause stops it
 * there. Each reader can have its own delay.
 *
 * Threads: the streaming thread copies packets into the window, never waits for a reader, and
 * serves up to #WeirFanoutSink:inline-readers readers itself. If there are more, threads that all
 * elements of the process share, one for each processor, serve them. The element counts every
 * packet that is due to a reader as sent, or as dropped with the reason, in
 * #WeirFanoutSink::get-stats and #WeirFanoutSink:fanout-stats. When UDP sends fail, the element
 * posts a warning with the reader and the system's reason, at most once in 10 s, and keeps sending.
 *
 * EOS passes when everything is sent, or after 2 s. On the way to READY, packets that are not sent
 * within 50 ms count as flushed. A flush empties the window; packets that a reader has not got
 * count as flushed.
 *
 * The element never changes a payload. It rewrites sequence numbers and timestamps for readers that
 * catch up, have a delay, or from whose stream it left out packets on purpose. It refuses packets
 * larger than 65507 bytes.
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
#include "weir.h"

GST_DEBUG_CATEGORY (fanoutsink_debug);
#define GST_CAT_DEFAULT fanoutsink_debug

static GstCaps *arrival_caps; // stays as long as the class

#define STOP_GRACE (50 * GST_MSECOND)
#define EOS_PATIENCE (2 * GST_SECOND)

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);

G_DEFINE_FINAL_TYPE (WeirFanoutSink, weir_fanout_sink, GST_TYPE_BASE_SINK)
GST_ELEMENT_REGISTER_DEFINE (fanoutsink, "fanoutsink", GST_RANK_NONE, WEIR_TYPE_FANOUT_SINK)

// ---- data: the streaming thread ----

// Asks upstream for a keyframe if a reader needs one to begin or to change its layers.
static void
ask_for_key (WeirFanoutSink *self, gint64 now_ns)
{
  if (!weir_fanout_wants_key (self->fanout, now_ns))
    return;
  GST_DEBUG_OBJECT (self, "asking upstream for a keyframe");
  gst_pad_push_event (GST_BASE_SINK_PAD (self), weir_key_event_new (self->n_keys_asked++));
}

// Copies a packet, which is a part of a buffer, into the window.
static void
take_part (WeirFanoutSink *self, GstBuffer *buffer, gsize at, gsize size, gint64 arrival_ns)
{
  const WeirLayer join = { .keyframe = TRUE };
  const WeirLayer *layer = NULL;
  const WeirLayerMeta *meta;
  guint8 *room;

  if (size == 0)
    return;
  room = weir_fanout_reserve (self->fanout, size);
  if (!room) {
    if (!self->warned_too_big)
      GST_WARNING_OBJECT (self, "dropping a packet of %" G_GSIZE_FORMAT " bytes; the maximum is %d",
          size, WEIR_PACKET_MAX);
    self->warned_too_big = TRUE;
    return;
  }
  if (self->has_joins && at == 0 && !GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_DELTA_UNIT))
    layer = &join;
  else if ((meta = weir_buffer_get_layer_meta (buffer)))
    layer = &meta->layer;
  if (gst_buffer_extract (buffer, at, room, size) == size)
    weir_fanout_commit_layer (self->fanout, size, layer, arrival_ns);
  else
    GST_WARNING_OBJECT (self, "cannot read %" GST_PTR_FORMAT, buffer);
}

// Returns when a buffer arrived: now, unless it says that it has waited before it came here.
static gint64
find_arrival (WeirFanoutSink *self, GstBuffer *buffer, gint64 now_ns)
{
  const GstReferenceTimestampMeta *meta =
      gst_buffer_get_reference_timestamp_meta (buffer, arrival_caps);
  gint64 arrival_ns = meta ? (gint64) MIN (meta->timestamp, (GstClockTime) now_ns) : now_ns;

  self->arrival_ns = MAX (self->arrival_ns, arrival_ns);
  return self->arrival_ns;
}

// Copies a packet, or the packets of weir_buffer_set_packets(), into the window. Call between
// weir_fanout_begin() and weir_fanout_end().
static void
take_packets (WeirFanoutSink *self, GstBuffer *buffer, gint64 now_ns)
{
  const gint64 arrival_ns = find_arrival (self, buffer, now_ns);
  guint n;
  const guint16 *lengths = weir_buffer_get_packets (buffer, &n);
  gsize at = 0;

  if (!lengths) {
    take_part (self, buffer, 0, gst_buffer_get_size (buffer), arrival_ns);
    return;
  }
  for (guint i = 0; i < n; i++) {
    take_part (self, buffer, at, lengths[i], arrival_ns);
    at += lengths[i];
  }
}

// Posts a message once if the disk of `spill-dir` is full, which makes the window smaller.
static void
look_at_file (WeirFanoutSink *self)
{
  gsize limit;

  if (!self->has_file || self->told_full || (limit = weir_fanout_limit (self->fanout)) == G_MAXSIZE)
    return;
  self->told_full = TRUE;
  GST_WARNING_OBJECT (
      self, "spill-dir: the disk is full; the window keeps %" G_GSIZE_FORMAT " bytes", limit);
  gst_element_post_message (
      GST_ELEMENT (self), gst_message_new_element (
                              GST_OBJECT (self), gst_structure_new ("fanout-spill-full", "capacity",
                                                     G_TYPE_UINT64, (guint64) limit, NULL)));
}

// Logs changes of readers, and posts a warning about failed sends that names one of the readers.
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
    GST_ELEMENT_WARNING (self, RESOURCE, WRITE, ("cannot send to a reader"),
        ("%s: %s; sends to %u other readers fail too", reader, g_strerror (error), n_others));
  else if (reader)
    GST_ELEMENT_WARNING (
        self, RESOURCE, WRITE, ("cannot send to a reader"), ("%s: %s", reader, g_strerror (error)));
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
    take_packets (self, buffer, now_ns);
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
      take_packets (self, gst_buffer_list_get (list, i), now_ns);
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
  self->has_joins = gst_structure_has_name (s, "video/mpegts");
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
  } else if (GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_STOP) {
    weir_fanout_flush (self->fanout);
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
    g_set_error (
        error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_FAILED, "cannot start the sending threads");
    return FALSE;
  }
  if (self->settings.bounds.bytes < WEIR_WINDOW_BYTES_MIN) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
        "window-bytes=%" G_GSIZE_FORMAT " may not hold a frame; the minimum is %d",
        self->settings.bounds.bytes, WEIR_WINDOW_BYTES_MIN);
    return FALSE;
  }
  if (!weir_udp_sockets_open (&sockets, config, self->cancellable, &buffer_short, error)) {
    g_prefix_error (error, "cannot open the sending socket: ");
    return FALSE;
  }
  if (buffer_short)
    GST_ELEMENT_WARNING (self, RESOURCE, SETTINGS,
        ("the send buffer is smaller than buffer-size=%d; raise net.core.wmem_max",
            config->buffer_size),
        (NULL));

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
  gboolean ok = fanout_clones_load (self, &err) && start (self, &config, &err);

  if (!ok)
    GST_ELEMENT_ERROR (self, RESOURCE, OPEN_WRITE, ("cannot start: %s", err->message), (NULL));
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

  fanout_readers_end_guests (self);
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
    GST_ELEMENT_ERROR (self, RESOURCE, OPEN_WRITE, ("cannot create a file in spill-dir=%s", dir),
        GST_ERROR_SYSTEM);
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
  // The last packets, such as an RTCP BYE, get STOP_GRACE to leave; then they count as flushed.
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
    g_error ("fanoutsink: out of memory"); // ends the process, as GLib does
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
  arrival_caps = gst_caps_new_empty_simple ("timestamp/x-weir-arrival");
  GST_MINI_OBJECT_FLAG_SET (arrival_caps, GST_MINI_OBJECT_FLAG_MAY_BE_LEAKED);

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
      "Serves one stream to many readers over UDP and TCP, with one send per frame and reader",
      "Weir");
}
