// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * SECTION:element-svclayerfilter
 * @title: svclayerfilter
 * @short_description: keeps the selected layers of a layered stream
 *
 * A scalable encoder writes several sizes, frame rates and qualities of a picture into one stream.
 * This element drops the layers above #WeirSvcLayerFilter:max-spatial,
 * #WeirSvcLayerFilter:max-temporal and #WeirSvcLayerFilter:max-quality, or the layers that do not
 * fit into #WeirSvcLayerFilter:target-bitrate. The output is a complete stream: caps, codec data
 * and parameter sets describe the layers left; RTP sequence numbers have no gaps; the marker is on
 * the last packet of each picture; aggregation packets contain only the selected layers. Timestamps
 * do not change.
 *
 * | codec | layers in access units | layers in RTP |
 * |---|---|---|
 * | H.264, SVC | spatial, quality, temporal | the same; single units, STAP-A, FU-A |
 * | H.265 | temporal | temporal |
 * | VP8 | none | temporal |
 * | VP9 | spatial (of superframes) | spatial, temporal |
 * | AV1 | spatial, temporal | spatial, temporal |
 *
 * If the caps announce the dependency descriptor of the AV1 RTP specification (extmap), the element
 * reads it for every codec but H.264, and prefers it to the payload.
 *
 * Properties may change while the element plays. With #WeirSvcLayerFilter:switch-mode safe, a
 * change takes effect where a decoder can follow: fewer temporal layers at once; more temporal
 * layers at the next picture of temporal layer 0, or where the stream allows it; another spatial
 * layer of H.264 at the next IDR of that layer; fewer spatial layers of VP9 and AV1 at once, more
 * at the next keyframe. If a change has to wait for a keyframe, the element requests one from
 * upstream, at most once in a second of stream time.
 *
 * #WeirSvcLayerFilter:output-mode selects one of three forms of H.264. Ordinary decoders ignore SVC
 * and decode the base layer only. `avc` turns the highest layer into plain H.264 without loss, if
 * that layer is not predicted from another (true of the spatial layers of svcenc and OpenH264);
 * otherwise the output is the base layer.
 *
 * Access units must be whole. `h264parse` splits access units whose base layer has several slices,
 * so send such streams as RTP, or directly from the encoder. svcenc makes one slice.
 *
 * RTP is processed by frames: packets are held until the last packet of their frame arrives.
 * Packets may be reordered within a frame. Packets that arrive after their frame was sent are
 * dropped, so put an `rtpjitterbuffer` in front if the network reorders packets. Lost packets leave
 * a gap in the output's sequence numbers. RTP in interleaved mode (STAP-B, MTAP, FU-B) passes with
 * all layers, after one warning. Put retransmission downstream of this element, because the element
 * renumbers packets.
 *
 * With #WeirSvcLayerFilter:mode tag the element drops and holds nothing; it adds a meta with the
 * layer to each buffer.
 *
 * The element works on the upstream streaming thread. Any thread may use its properties.
 *
 * ## Example launch lines
 * |[
 * gst-launch-1.0 filesrc location=tests/data/svc/svc_3s3t.264 ! h264parse ! svclayerfilter max-spatial=1 max-temporal=1 output-mode=avc ! openh264dec ! fakesink
 * ]| The middle spatial layer at half the frame rate, as plain H.264 for an ordinary decoder.
 *
 * Since: 0.1
 */
#include "config.h"

#include "svclayerfilter.h"

#include "elementname.h"
#include "keyevent.h"
#include "layercaps.h"
#include "svclayerfilter_private.h"

GST_DEBUG_CATEGORY_STATIC (svclayerfilter_debug);
#define GST_CAT_DEFAULT svclayerfilter_debug

#define CODEC_CAPS                                                                                 \
  "video/x-h264, stream-format=(string){ byte-stream, avc }, alignment=(string)au; "               \
  "video/x-h265, stream-format=(string){ byte-stream, hvc1, hev1 }, alignment=(string)au; "        \
  "video/x-vp8; video/x-vp9; video/x-av1; "                                                        \
  "application/x-rtp, media=(string)video, "                                                       \
  "encoding-name=(string){ H264, H264-SVC, H265, VP8, VP9, AV1 }"

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (CODEC_CAPS));
static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (CODEC_CAPS));

G_DEFINE_FINAL_TYPE (WeirSvcLayerFilter, weir_svc_layer_filter, GST_TYPE_ELEMENT)
GST_ELEMENT_REGISTER_DEFINE (
    svclayerfilter, "svclayerfilter", GST_RANK_NONE, WEIR_TYPE_SVC_LAYER_FILTER)

// ---- caps ----

static void
release_events (WeirSvcLayerFilter *self)
{
  GstEvent *event;

  while ((event = g_queue_pop_head (&self->held_events)))
    gst_pad_push_event (self->srcpad, event);
}

static void
push_caps (WeirSvcLayerFilter *self, GstCaps *caps)
{
  if (!self->out_caps || !gst_caps_is_equal (caps, self->out_caps)) {
    gst_caps_replace (&self->out_caps, caps);
    gst_pad_push_event (self->srcpad, gst_event_new_caps (caps));
  }
  gst_caps_unref (caps);
  release_events (self);
}

// Pushes new caps if the layers or parameter sets have changed. Call before each frame is pushed.
static void
update_caps (WeirSvcLayerFilter *self)
{
  const WeirProjection *p = &self->stream.projection;

  if (!self->in_caps
      || (self->out_caps && self->caps_changes == self->stream.svc.changes
          && self->caps_plain == p->plain && weir_layer_set_equal (self->caps_now, p->now)))
    return;
  self->caps_changes = self->stream.svc.changes;
  self->caps_plain = p->plain;
  self->caps_now = p->now;
  push_caps (self, layer_caps_make (self->in_caps, &self->stream));
}

// Starts a stream with the input caps. For H.264 the output caps depend on the first frame, so they
// are held back until then; for other codecs and in mode=tag they are pushed at once.
static void
layer_filter_take_caps (WeirSvcLayerFilter *self, GstCaps *caps)
{
  WeirCodec codec;
  gboolean rtp;
  guint length_size, clock_rate;
  LayerSettings settings;

  self->have_stream = layer_caps_read (caps, &codec, &rtp, &length_size, &clock_rate);
  gst_caps_replace (&self->in_caps, caps);
  gst_caps_replace (&self->out_caps, NULL);
  GST_OBJECT_LOCK (self);
  settings = self->settings;
  GST_OBJECT_UNLOCK (self);
  layer_stream_start (&self->stream, codec, rtp, length_size, clock_rate, &settings);
  layer_caps_note (caps, &self->stream);
  self->stream.frame.dependency_id = rtp ? layer_caps_dependency_id (caps) : 0;
  self->warned_interleaved = FALSE;
  if (codec != WEIR_CODEC_H264 || settings.mode == LAYER_MODE_TAG)
    push_caps (self, gst_caps_ref (caps));
}

// ---- data ----

static void
publish_counts (WeirSvcLayerFilter *self)
{
  const WeirProjection *p = &self->stream.projection;

  GST_OBJECT_LOCK (self);
  self->counts = self->stream.counts;
  if (self->rates.periods != self->stream.rates.periods || self->rates.n != self->stream.rates.n)
    self->rates = self->stream.rates;
  self->now = p->now;
  self->plain = p->plain;
  self->fits = self->stream.fits;
  GST_OBJECT_UNLOCK (self);
}

static void
note_sizes (WeirSvcLayerFilter *self)
{
  guint8 bytes[WEIR_SPS_MAX];
  WeirSps sps;
  gsize len;

  for (gint i = 0; i < WEIR_SPATIAL_LAYERS; i++) {
    const WeirLayerSet set = { (gint8) i, -1, -1 };

    if (!weir_svc_layer_sps (&self->stream.svc, i, bytes, &len)
        || weir_sps_read (bytes, len, &sps) < 0)
      continue;
    GST_OBJECT_LOCK (self);
    self->sizes[set.spatial][0] = sps.width;
    self->sizes[set.spatial][1] = sps.height;
    GST_OBJECT_UNLOCK (self);
  }
}

static void
ask_for_key (WeirSvcLayerFilter *self)
{
  GST_DEBUG_OBJECT (self, "requesting a keyframe");
  gst_pad_push_event (self->sinkpad, weir_key_event_new ((guint) self->stream.counts.key_requests));
}

static void
warn_once (WeirSvcLayerFilter *self)
{
  if (!self->stream.frame.interleaved || self->warned_interleaved)
    return;
  self->warned_interleaved = TRUE;
  GST_ELEMENT_WARNING (self, STREAM, FORMAT,
      ("cannot filter RTP in interleaved mode; it passes with all layers"),
      ("packets are STAP-B, MTAP or FU-B"));
}

static void
read_settings (WeirSvcLayerFilter *self)
{
  LayerSettings settings;

  GST_OBJECT_LOCK (self);
  settings = self->settings;
  GST_OBJECT_UNLOCK (self);
  layer_stream_set (&self->stream, &settings);
}

// Runs after a frame was parsed, before it is pushed: updates the picture sizes, warns, and
// requests a keyframe if needed.
static void
frame_was_read (WeirSvcLayerFilter *self)
{
  if (self->stream.codec == WEIR_CODEC_H264 && self->stream.svc.changes != self->caps_changes)
    note_sizes (self);
  warn_once (self);
  if (layer_stream_wants_key (&self->stream))
    ask_for_key (self);
}

static GstFlowReturn
push_frame (WeirSvcLayerFilter *self)
{
  GstBufferList *list;

  read_settings (self);
  if (!layer_stream_read (&self->stream))
    return GST_FLOW_OK;
  frame_was_read (self);
  list = layer_stream_pop (&self->stream);
  publish_counts (self);
  if (!list)
    return GST_FLOW_OK;
  update_caps (self);
  return gst_pad_push_list (self->srcpad, list);
}

// Takes ownership of the packet. Pushes each frame that the packet completes.
static GstFlowReturn
take_packet (WeirSvcLayerFilter *self, GstBuffer *packet)
{
  const guint64 in = self->stream.counts.in;
  GstFlowReturn ret = GST_FLOW_OK;
  gboolean again;

  do {
    if (layer_stream_push (&self->stream, packet, &again))
      ret = push_frame (self);
  } while (again);
  if (self->stream.counts.in != in)
    publish_counts (self);
  return ret;
}

static GstFlowReturn
take_au (WeirSvcLayerFilter *self, GstBuffer *au)
{
  GstMapInfo map;

  read_settings (self);
  if (!gst_buffer_map (au, &map, GST_MAP_READ)) {
    gst_buffer_unref (au);
    return GST_FLOW_ERROR;
  }
  if (!layer_stream_read_au (&self->stream, au, &map)) {
    layer_stream_drop_au (&self->stream, au, &map);
    publish_counts (self);
    return GST_FLOW_OK;
  }
  frame_was_read (self);
  au = layer_stream_pop_au (&self->stream, au, &map);
  publish_counts (self);
  if (!au)
    return GST_FLOW_OK;
  update_caps (self);
  return gst_pad_push (self->srcpad, au);
}

static gboolean
is_tagging (WeirSvcLayerFilter *self)
{
  gboolean tagging;

  GST_OBJECT_LOCK (self);
  tagging = self->settings.mode == LAYER_MODE_TAG;
  GST_OBJECT_UNLOCK (self);
  return tagging;
}

// Pushes the held frame and the original caps, before buffers that are only tagged.
static void
begin_tagging (WeirSvcLayerFilter *self)
{
  push_frame (self);
  push_caps (self, gst_caps_ref (self->in_caps));
}

static GstFlowReturn
weir_svc_layer_filter_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  WeirSvcLayerFilter *self = WEIR_SVC_LAYER_FILTER (parent);

  if (!self->have_stream) {
    gst_buffer_unref (buffer);
    return GST_FLOW_NOT_NEGOTIATED;
  }
  if (is_tagging (self)) {
    begin_tagging (self);
    buffer = layer_stream_tag (&self->stream, buffer);
    publish_counts (self);
    return gst_pad_push (self->srcpad, buffer);
  }
  return self->stream.rtp ? take_packet (self, buffer) : take_au (self, buffer);
}

static gboolean
tag_each (GstBuffer **buffer, guint i, gpointer user_data)
{
  WeirSvcLayerFilter *self = user_data;

  *buffer = layer_stream_tag (&self->stream, *buffer);
  return TRUE;
}

typedef struct {
  WeirSvcLayerFilter *self;
  GstFlowReturn ret;
} Take;

// Takes the buffer out of the list, so that the list's reference does not keep it read-only.
static gboolean
take_each (GstBuffer **buffer, guint i, gpointer user_data)
{
  Take *take = user_data;
  GstBuffer *taken = g_steal_pointer (buffer);

  if (take->ret == GST_FLOW_OK)
    take->ret =
        weir_svc_layer_filter_chain (take->self->sinkpad, GST_OBJECT_CAST (take->self), taken);
  else
    gst_buffer_unref (taken);
  return TRUE;
}

static GstFlowReturn
weir_svc_layer_filter_chain_list (GstPad *pad, GstObject *parent, GstBufferList *list)
{
  WeirSvcLayerFilter *self = WEIR_SVC_LAYER_FILTER (parent);
  Take take = { self, GST_FLOW_OK };

  list = gst_buffer_list_make_writable (list);
  if (self->have_stream && is_tagging (self)) {
    begin_tagging (self);
    gst_buffer_list_foreach (list, tag_each, self);
    publish_counts (self);
    return gst_pad_push_list (self->srcpad, list);
  }
  gst_buffer_list_foreach (list, take_each, &take);
  gst_buffer_list_unref (list);
  return take.ret;
}

// ---- events and queries ----

static void
drop_events (WeirSvcLayerFilter *self)
{
  g_queue_clear_full (&self->held_events, (GDestroyNotify) gst_event_unref);
}

// Pushes the held frame. Call before EOS and before events that change the meaning of buffers.
static void
drain (WeirSvcLayerFilter *self)
{
  if (self->have_stream)
    push_frame (self);
}

static gboolean
weir_svc_layer_filter_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  WeirSvcLayerFilter *self = WEIR_SVC_LAYER_FILTER (parent);
  GstCaps *caps;

  switch (GST_EVENT_TYPE (event)) {
    case GST_EVENT_CAPS:
      gst_event_parse_caps (event, &caps);
      if (!self->have_stream || !gst_caps_is_equal (caps, self->in_caps)) {
        drain (self);
        layer_filter_take_caps (self, caps);
      }
      gst_event_unref (event);
      return self->have_stream;
    case GST_EVENT_FLUSH_STOP:
      layer_stream_flush (&self->stream);
      break;
    case GST_EVENT_GAP:
    case GST_EVENT_EOS:
      drain (self);
      if (self->in_caps && !self->out_caps)
        push_caps (self, gst_caps_ref (self->in_caps));
      break;
    case GST_EVENT_STREAM_START:
    case GST_EVENT_SEGMENT:
      drain (self);
      break;
    default:
      break;
  }
  if (GST_EVENT_IS_SERIALIZED (event) && GST_EVENT_TYPE (event) > GST_EVENT_CAPS && self->in_caps
      && !self->out_caps) {
    g_queue_push_tail (&self->held_events, event);
    return TRUE;
  }
  return gst_pad_event_default (pad, parent, event);
}

// Returns the intersection of `caps` with `filter`, which may be NULL. Takes ownership of `caps`.
// (transfer full)
static GstCaps *
take_filtered (GstCaps *caps, GstCaps *filter)
{
  GstCaps *some;

  if (!filter)
    return caps;
  some = gst_caps_intersect_full (filter, caps, GST_CAPS_INTERSECT_FIRST);
  gst_caps_unref (caps);
  return some;
}

// Returns the caps that the sink pad accepts. Ignores downstream's restrictions on fields that the
// element changes. (transfer full)
static GstCaps *
get_sink_caps (WeirSvcLayerFilter *self, GstCaps *filter)
{
  GstCaps *template = gst_pad_get_pad_template_caps (self->sinkpad);
  GstCaps *peer = gst_pad_peer_query_caps (self->srcpad, NULL);
  GstCaps *caps;

  peer = gst_caps_make_writable (peer);
  for (guint i = 0; i < gst_caps_get_size (peer); i++)
    gst_structure_remove_fields (gst_caps_get_structure (peer, i), "profile", "level", "width",
        "height", "codec_data", "sprop-parameter-sets", "profile-level-id", "encoding-name", NULL);
  caps = gst_caps_intersect_full (template, peer, GST_CAPS_INTERSECT_FIRST);
  gst_caps_unref (peer);
  gst_caps_unref (template);
  return take_filtered (caps, filter);
}

static gboolean
weir_svc_layer_filter_sink_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  WeirSvcLayerFilter *self = WEIR_SVC_LAYER_FILTER (parent);
  GstCaps *caps, *filter, *template;

  switch (GST_QUERY_TYPE (query)) {
    case GST_QUERY_CAPS:
      gst_query_parse_caps (query, &filter);
      caps = get_sink_caps (self, filter);
      gst_query_set_caps_result (query, caps);
      gst_caps_unref (caps);
      return TRUE;
    case GST_QUERY_ACCEPT_CAPS:
      gst_query_parse_accept_caps (query, &caps);
      template = gst_pad_get_pad_template_caps (pad);
      gst_query_set_accept_caps_result (query, gst_caps_can_intersect (caps, template));
      gst_caps_unref (template);
      return TRUE;
    default:
      return gst_pad_query_default (pad, parent, query);
  }
}

static gboolean
weir_svc_layer_filter_src_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  GstCaps *filter, *caps;

  if (GST_QUERY_TYPE (query) != GST_QUERY_CAPS)
    return gst_pad_query_default (pad, parent, query);
  gst_query_parse_caps (query, &filter);
  caps = gst_pad_get_current_caps (pad);
  if (!caps)
    caps = gst_pad_get_pad_template_caps (pad);
  caps = take_filtered (caps, filter);
  gst_query_set_caps_result (query, caps);
  gst_caps_unref (caps);
  return TRUE;
}

static GstStateChangeReturn
weir_svc_layer_filter_change_state (GstElement *element, GstStateChange transition)
{
  WeirSvcLayerFilter *self = WEIR_SVC_LAYER_FILTER (element);
  GstStateChangeReturn ret =
      GST_ELEMENT_CLASS (weir_svc_layer_filter_parent_class)->change_state (element, transition);

  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) {
    layer_stream_flush (&self->stream);
    gst_caps_replace (&self->in_caps, NULL);
    gst_caps_replace (&self->out_caps, NULL);
    drop_events (self);
    self->have_stream = FALSE;
  }
  return ret;
}

static void
weir_svc_layer_filter_init (WeirSvcLayerFilter *self)
{
  self->sinkpad = gst_pad_new_from_static_template (&sink_template, "sink");
  gst_pad_set_chain_function (self->sinkpad, weir_svc_layer_filter_chain);
  gst_pad_set_chain_list_function (self->sinkpad, weir_svc_layer_filter_chain_list);
  gst_pad_set_event_function (self->sinkpad, weir_svc_layer_filter_sink_event);
  gst_pad_set_query_function (self->sinkpad, weir_svc_layer_filter_sink_query);
  gst_element_add_pad (GST_ELEMENT (self), self->sinkpad);
  self->srcpad = gst_pad_new_from_static_template (&src_template, "src");
  gst_pad_set_query_function (self->srcpad, weir_svc_layer_filter_src_query);
  gst_pad_use_fixed_caps (self->srcpad);
  gst_element_add_pad (GST_ELEMENT (self), self->srcpad);

  self->settings.limit = WEIR_LAYER_SET_ALL;
  self->now = WEIR_LAYER_SET_ALL;
  self->plain = -1;
  self->fits = TRUE;
  g_queue_init (&self->held_events);
  layer_stream_init (&self->stream);
}

static void
weir_svc_layer_filter_finalize (GObject *object)
{
  WeirSvcLayerFilter *self = WEIR_SVC_LAYER_FILTER (object);

  layer_stream_clear (&self->stream);
  gst_caps_replace (&self->in_caps, NULL);
  gst_caps_replace (&self->out_caps, NULL);
  drop_events (self);
  G_OBJECT_CLASS (weir_svc_layer_filter_parent_class)->finalize (object);
}

static void
weir_svc_layer_filter_class_init (WeirSvcLayerFilterClass *klass)
{
  GObjectClass *gobject_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (svclayerfilter_debug, "svclayerfilter", 0, "Layer filter");

  gobject_class->finalize = weir_svc_layer_filter_finalize;
  element_class->change_state = weir_svc_layer_filter_change_state;

  svc_layer_filter_properties_install (gobject_class);
  weir_element_class_set_default_name (gobject_class);
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "Layer filter", "Filter/Video/Network/RTP",
      "Keeps the selected layers of a layered stream", "Weir");
}
