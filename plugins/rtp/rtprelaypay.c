// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * SECTION:element-rtprelaypay
 * @title: rtprelaypay
 * @short_description: takes the place of a payloader for a stream that is RTP already
 *
 * An RTSP media factory expects an element named `pay0` that behaves like a payloader: it reads the
 * payload type, SSRC, sequence number, timestamp and running time from the element's properties,
 * and makes the SDP from the caps of its source pad. If the stream is RTP already (from a camera,
 * another server, a file), depayloading and payloading it again costs a parser and changes the
 * packets. This element provides the properties and caps of a payloader and forwards buffers and
 * buffer lists unchanged.
 *
 * If the caps lack a field that the SDP needs (payload, ssrc, clock-rate, ...), the element holds
 * back the caps and the events behind them until the first packet, and takes the missing fields
 * from that packet. For a static payload type these include media, encoding-name and clock-rate.
 *
 * The element never rewrites a packet. #WeirRtpRelayPay:pt and #WeirRtpRelayPay:mtu can be set,
 * because programs set them on any payloader, but have no effect on packets; after the first packet
 * #WeirRtpRelayPay:pt is that packet's payload type. Buffers that are not RTP are dropped and
 * counted in #WeirRtpRelayPay:stats.
 *
 * The element works on the upstream streaming thread. Any thread may read its properties.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=60 ! vp8enc ! rtpvp8pay ! rtprelaypay ! rtpvp8depay ! vp8dec ! fakesink
 * ]|
 *
 * Since: 0.1
 */
#include "config.h"

#include "rtprelaypay.h"

#include "elementname.h"
#include "rtpbuffer.h"

#include <gst/rtp/rtp.h>

GST_DEBUG_CATEGORY_STATIC (rtprelaypay_debug);
#define GST_CAT_DEFAULT rtprelaypay_debug

enum {
  PROP_0,
  PROP_PT,
  PROP_MTU,
  PROP_SSRC,
  PROP_SEQNUM,
  PROP_TIMESTAMP,
  PROP_SEQNUM_OFFSET,
  PROP_TIMESTAMP_OFFSET,
  PROP_STATS,
};

#define DEFAULT_PT 96
#define DEFAULT_MTU 1400
#define DEFAULT_SSRC G_MAXUINT32
#define DEFAULT_SEQNUM_OFFSET -1
#define DEFAULT_TIMESTAMP_OFFSET G_MAXUINT32
#define MAX_HELD 64 // most events held back; above, the caps go out incomplete
#define WARN_INTERVAL (10 * G_USEC_PER_SEC)

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE (
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS ("application/x-rtp"));
static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS ("application/x-rtp"));

struct _WeirRtpRelayPay {
  GstElement parent;

  GstPad *sinkpad;
  GstPad *srcpad;

  // Streaming thread only.
  GstSegment segment;
  GstCaps *held_caps; // held back until the first packet
  GQueue held_events; // held back until the caps
  gint64 warned_at;   // monotonic time in us, 0 = never

  // Under the object lock.
  guint mtu;
  guint pt;
  WeirRtp last; // the last packet forwarded
  gboolean have_last;
  guint clock_rate;
  guint64 running_time;
  guint16 seqnum_base;
  guint32 timestamp_base;
  guint64 n_packets;
  guint64 n_not_rtp;
};

G_DEFINE_FINAL_TYPE (WeirRtpRelayPay, weir_rtp_relay_pay, GST_TYPE_ELEMENT)
GST_ELEMENT_REGISTER_DEFINE (rtprelaypay, "rtprelaypay", GST_RANK_NONE, WEIR_TYPE_RTP_RELAY_PAY)

// ---- data ----

static void
set_if_missing (GstStructure *s, const gchar *field, guint value)
{
  if (gst_structure_has_field (s, field))
    return;
  // Elsewhere in GStreamer these two fields are signed.
  if (g_str_equal (field, "payload") || g_str_equal (field, "clock-rate"))
    gst_structure_set (s, field, G_TYPE_INT, (gint) value, NULL);
  else
    gst_structure_set (s, field, G_TYPE_UINT, value, NULL);
}

static gboolean
caps_are_complete (GstCaps *caps)
{
  static const gchar *const fields[] = { "media", "payload", "clock-rate", "encoding-name",
    "ssrc" };
  GstStructure *s = gst_caps_get_structure (caps, 0);

  for (guint i = 0; i < G_N_ELEMENTS (fields); i++) {
    if (!gst_structure_has_field (s, fields[i]))
      return FALSE;
  }
  return TRUE;
}

static void
relay_pay_take_caps (WeirRtpRelayPay *self, GstCaps *caps)
{
  gint clock_rate = 0;

  gst_structure_get_int (gst_caps_get_structure (caps, 0), "clock-rate", &clock_rate);
  GST_OBJECT_LOCK (self);
  self->clock_rate = (guint) MAX (clock_rate, 0);
  GST_OBJECT_UNLOCK (self);
}

// Pushes the held caps and events. `rtp` is the first packet, from which missing fields of the caps
// are filled; may be NULL.
static void
release_held (WeirRtpRelayPay *self, const WeirRtp *rtp)
{
  GstEvent *event;

  if (self->held_caps) {
    GstCaps *caps = gst_caps_make_writable (g_steal_pointer (&self->held_caps));
    GstStructure *s = gst_caps_get_structure (caps, 0);

    if (rtp) {
      gint pt = rtp->pt;
      const GstRTPPayloadInfo *info;

      set_if_missing (s, "payload", rtp->pt);
      set_if_missing (s, "ssrc", rtp->ssrc);
      set_if_missing (s, "seqnum-offset", rtp->seq);
      set_if_missing (s, "timestamp-offset", rtp->timestamp);
      gst_structure_get_int (s, "payload", &pt);
      info = pt < 96 ? gst_rtp_payload_info_for_pt ((guint8) pt) : NULL;
      if (info) {
        if (info->clock_rate)
          set_if_missing (s, "clock-rate", info->clock_rate);
        if (!gst_structure_has_field (s, "media"))
          gst_structure_set (s, "media", G_TYPE_STRING, info->media, NULL);
        if (!gst_structure_has_field (s, "encoding-name"))
          gst_structure_set (s, "encoding-name", G_TYPE_STRING, info->encoding_name, NULL);
      }
    }
    relay_pay_take_caps (self, caps);
    gst_pad_push_event (self->srcpad, gst_event_new_caps (caps));
    gst_caps_unref (caps);
  }
  while ((event = g_queue_pop_head (&self->held_events)))
    gst_pad_push_event (self->srcpad, event);
}

// Updates properties and statistics for a packet. Returns FALSE if the buffer is not RTP and must
// be dropped.
static gboolean
note_packet (WeirRtpRelayPay *self, GstBuffer *buffer)
{
  WeirRtp rtp;
  gint64 now;

  if (!weir_rtp_buffer_read (buffer, &rtp)) {
    now = g_get_monotonic_time ();
    GST_OBJECT_LOCK (self);
    self->n_not_rtp++;
    GST_OBJECT_UNLOCK (self);
    if (self->warned_at == 0 || now - self->warned_at > WARN_INTERVAL) {
      self->warned_at = now;
      GST_WARNING_OBJECT (self, "dropping a buffer that is not RTP: %" GST_PTR_FORMAT, buffer);
    }
    return FALSE;
  }

  GST_OBJECT_LOCK (self);
  if (!self->have_last) {
    self->seqnum_base = rtp.seq;
    self->timestamp_base = rtp.timestamp;
  }
  self->have_last = TRUE;
  self->last = rtp;
  self->n_packets++;
  if (GST_BUFFER_PTS_IS_VALID (buffer))
    self->running_time =
        gst_segment_to_running_time (&self->segment, GST_FORMAT_TIME, GST_BUFFER_PTS (buffer));
  GST_OBJECT_UNLOCK (self);

  if (self->held_caps)
    release_held (self, &rtp);
  return TRUE;
}

static GstFlowReturn
weir_rtp_relay_pay_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  WeirRtpRelayPay *self = WEIR_RTP_RELAY_PAY (parent);

  if (!note_packet (self, buffer)) {
    gst_buffer_unref (buffer);
    return GST_FLOW_OK;
  }
  return gst_pad_push (self->srcpad, buffer);
}

static GstFlowReturn
weir_rtp_relay_pay_chain_list (GstPad *pad, GstObject *parent, GstBufferList *list)
{
  WeirRtpRelayPay *self = WEIR_RTP_RELAY_PAY (parent);

  // The list may be shared, so make it writable only if a buffer must be removed.
  for (guint i = 0; i < gst_buffer_list_length (list);) {
    if (note_packet (self, gst_buffer_list_get (list, i))) {
      i++;
    } else {
      list = gst_buffer_list_make_writable (list);
      gst_buffer_list_remove (list, i, 1);
    }
  }
  if (gst_buffer_list_length (list) == 0) {
    gst_buffer_list_unref (list);
    return GST_FLOW_OK;
  }
  return gst_pad_push_list (self->srcpad, list);
}

// ---- events ----

static void
drop_held (WeirRtpRelayPay *self)
{
  gst_clear_caps (&self->held_caps);
  g_queue_clear_full (&self->held_events, (GDestroyNotify) gst_event_unref);
}

static gboolean
weir_rtp_relay_pay_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  WeirRtpRelayPay *self = WEIR_RTP_RELAY_PAY (parent);
  GstCaps *caps;
  gboolean ok;

  switch (GST_EVENT_TYPE (event)) {
    case GST_EVENT_CAPS:
      gst_event_parse_caps (event, &caps);
      if (caps_are_complete (caps)) {
        gst_clear_caps (&self->held_caps);
        relay_pay_take_caps (self, caps);
        ok = gst_pad_event_default (pad, parent, event);
        // The held events must precede the buffers and events that follow these caps.
        release_held (self, NULL);
        return ok;
      }
      gst_caps_replace (&self->held_caps, caps);
      gst_event_unref (event);
      return TRUE;
    case GST_EVENT_SEGMENT:
      GST_OBJECT_LOCK (self);
      gst_event_copy_segment (event, &self->segment);
      GST_OBJECT_UNLOCK (self);
      break;
    case GST_EVENT_EOS:
      release_held (self, NULL);
      break;
    case GST_EVENT_FLUSH_STOP:
      // A flush invalidates segments, but not caps.
      g_queue_clear_full (&self->held_events, (GDestroyNotify) gst_event_unref);
      GST_OBJECT_LOCK (self);
      gst_segment_init (&self->segment, GST_FORMAT_TIME);
      GST_OBJECT_UNLOCK (self);
      return gst_pad_event_default (pad, parent, event);
    default:
      break;
  }

  if (self->held_caps && GST_EVENT_IS_SERIALIZED (event)
      && GST_EVENT_TYPE (event) != GST_EVENT_STREAM_START) {
    // A gap before the first packet carries no information.
    if (!GST_EVENT_IS_STICKY (event)) {
      gst_event_unref (event);
      return TRUE;
    }
    g_queue_push_tail (&self->held_events, event);
    if (self->held_events.length > MAX_HELD)
      release_held (self, NULL);
    return TRUE;
  }
  return gst_pad_event_default (pad, parent, event);
}

// ---- states ----

static void
reset (WeirRtpRelayPay *self)
{
  drop_held (self);
  self->warned_at = 0;
  GST_OBJECT_LOCK (self);
  gst_segment_init (&self->segment, GST_FORMAT_TIME);
  self->have_last = FALSE;
  self->last = (WeirRtp) { 0 };
  self->clock_rate = 0;
  self->running_time = GST_CLOCK_TIME_NONE;
  self->n_packets = 0;
  self->n_not_rtp = 0;
  GST_OBJECT_UNLOCK (self);
}

static GstStateChangeReturn
weir_rtp_relay_pay_change_state (GstElement *element, GstStateChange transition)
{
  GstStateChangeReturn ret =
      GST_ELEMENT_CLASS (weir_rtp_relay_pay_parent_class)->change_state (element, transition);

  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY)
    reset (WEIR_RTP_RELAY_PAY (element));
  return ret;
}

// ---- properties. Call with the object lock ----

static guint
current_pt (WeirRtpRelayPay *self)
{
  return self->have_last ? self->last.pt : self->pt;
}

static GstStructure *
relay_pay_make_stats (WeirRtpRelayPay *self)
{
  return gst_structure_new ("application/x-rtp-payload-stats", "clock-rate", G_TYPE_UINT,
      self->clock_rate, "running-time", G_TYPE_UINT64, self->running_time, "seqnum", G_TYPE_UINT,
      (guint) self->last.seq, "timestamp", G_TYPE_UINT, (guint) self->last.timestamp, "ssrc",
      G_TYPE_UINT, (guint) self->last.ssrc, "pt", G_TYPE_UINT, current_pt (self), "seqnum-offset",
      G_TYPE_UINT, self->have_last ? (guint) self->seqnum_base : 0, "timestamp-offset", G_TYPE_UINT,
      self->have_last ? (guint) self->timestamp_base : 0, "packets", G_TYPE_UINT64, self->n_packets,
      "not-rtp", G_TYPE_UINT64, self->n_not_rtp, NULL);
}

static void
weir_rtp_relay_pay_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  WeirRtpRelayPay *self = WEIR_RTP_RELAY_PAY (object);

  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_PT:
      self->pt = g_value_get_uint (value);
      break;
    case PROP_MTU:
      self->mtu = g_value_get_uint (value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
weir_rtp_relay_pay_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  WeirRtpRelayPay *self = WEIR_RTP_RELAY_PAY (object);

  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_PT:
      g_value_set_uint (value, current_pt (self));
      break;
    case PROP_MTU:
      g_value_set_uint (value, self->mtu);
      break;
    case PROP_SSRC:
      g_value_set_uint (value, self->have_last ? self->last.ssrc : DEFAULT_SSRC);
      break;
    case PROP_SEQNUM:
      g_value_set_uint (value, self->last.seq);
      break;
    case PROP_TIMESTAMP:
      g_value_set_uint (value, self->last.timestamp);
      break;
    case PROP_SEQNUM_OFFSET:
      g_value_set_int (value, self->have_last ? self->seqnum_base : DEFAULT_SEQNUM_OFFSET);
      break;
    case PROP_TIMESTAMP_OFFSET:
      g_value_set_uint (value, self->have_last ? self->timestamp_base : DEFAULT_TIMESTAMP_OFFSET);
      break;
    case PROP_STATS:
      g_value_take_boxed (value, relay_pay_make_stats (self));
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
weir_rtp_relay_pay_init (WeirRtpRelayPay *self)
{
  g_queue_init (&self->held_events);
  self->pt = DEFAULT_PT;
  self->mtu = DEFAULT_MTU;
  reset (self);

  self->sinkpad = gst_pad_new_from_static_template (&sink_template, "sink");
  gst_pad_set_chain_function (self->sinkpad, weir_rtp_relay_pay_chain);
  gst_pad_set_chain_list_function (self->sinkpad, weir_rtp_relay_pay_chain_list);
  gst_pad_set_event_function (self->sinkpad, weir_rtp_relay_pay_sink_event);
  GST_PAD_SET_PROXY_CAPS (self->sinkpad);
  GST_PAD_SET_PROXY_ALLOCATION (self->sinkpad);
  gst_element_add_pad (GST_ELEMENT (self), self->sinkpad);

  self->srcpad = gst_pad_new_from_static_template (&src_template, "src");
  GST_PAD_SET_PROXY_CAPS (self->srcpad);
  gst_element_add_pad (GST_ELEMENT (self), self->srcpad);
}

static void
weir_rtp_relay_pay_finalize (GObject *object)
{
  drop_held (WEIR_RTP_RELAY_PAY (object));
  G_OBJECT_CLASS (weir_rtp_relay_pay_parent_class)->finalize (object);
}

static void
weir_rtp_relay_pay_class_init (WeirRtpRelayPayClass *klass)
{
  GObjectClass *gobject_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  const GParamFlags ro = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;
  const GParamFlags rw = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

  GST_DEBUG_CATEGORY_INIT (rtprelaypay_debug, "rtprelaypay", 0, "Pass-through RTP payloader");

  gobject_class->set_property = weir_rtp_relay_pay_set_property;
  gobject_class->get_property = weir_rtp_relay_pay_get_property;
  gobject_class->finalize = weir_rtp_relay_pay_finalize;
  element_class->change_state = weir_rtp_relay_pay_change_state;

  g_object_class_install_property (gobject_class, PROP_PT,
      g_param_spec_uint ("pt", "Payload type",
          "Payload type of the last packet; before the first packet, the value that was set. "
          "Packets are not changed",
          0, 0x7f, DEFAULT_PT, rw));
  g_object_class_install_property (gobject_class, PROP_MTU,
      g_param_spec_uint ("mtu", "MTU",
          "Has no effect: packets are not changed. Exists for programs that set it", 28, G_MAXUINT,
          DEFAULT_MTU, rw));
  g_object_class_install_property (gobject_class, PROP_SSRC,
      g_param_spec_uint ("ssrc", "SSRC", "SSRC of the last packet; 4294967295 before the first", 0,
          G_MAXUINT32, DEFAULT_SSRC, ro));
  g_object_class_install_property (gobject_class, PROP_SEQNUM,
      g_param_spec_uint ("seqnum", "Sequence number", "Sequence number of the last packet", 0,
          G_MAXUINT16, 0, ro));
  g_object_class_install_property (gobject_class, PROP_TIMESTAMP,
      g_param_spec_uint (
          "timestamp", "Timestamp", "RTP timestamp of the last packet", 0, G_MAXUINT32, 0, ro));
  g_object_class_install_property (gobject_class, PROP_SEQNUM_OFFSET,
      g_param_spec_int ("seqnum-offset", "Sequence number offset",
          "Sequence number of the first packet; -1 before it", -1, G_MAXUINT16,
          DEFAULT_SEQNUM_OFFSET, ro));
  g_object_class_install_property (gobject_class, PROP_TIMESTAMP_OFFSET,
      g_param_spec_uint ("timestamp-offset", "Timestamp offset",
          "RTP timestamp of the first packet; 4294967295 before it", 0, G_MAXUINT32,
          DEFAULT_TIMESTAMP_OFFSET, ro));
  /**
   * WeirRtpRelayPay:stats:
   *
   * The statistics of a payloader: `clock-rate` in Hz; of the last packet `running-time` (#guint64,
   * in ns), `seqnum`, `timestamp`, `ssrc` and `pt`; of the first packet `seqnum-offset` and
   * `timestamp-offset`. All but running-time are #guint. And two counts of this element: `packets`
   * (#guint64, forwarded) and `not-rtp` (#guint64, dropped).
   */
  g_object_class_install_property (gobject_class, PROP_STATS,
      g_param_spec_boxed ("stats", "Statistics",
          "Statistics of a payloader, and the number of packets forwarded and dropped",
          GST_TYPE_STRUCTURE, ro));

  weir_element_class_set_default_name (gobject_class);
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "Pass-through RTP payloader",
      "Codec/Payloader/Network/RTP",
      "Forwards RTP unchanged where an RTSP media factory expects a payloader", "Weir");
}
