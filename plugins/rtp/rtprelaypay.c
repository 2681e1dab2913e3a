// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * SECTION:element-rtprelaypay
 * @title: rtprelaypay
 * @short_description: stands where a payloader is expected, and lets RTP through unchanged
 *
 * An RTSP media factory wants an element named `pay0` that looks like a payloader: it reads the
 * payload type, SSRC, sequence number, timestamp and running time from its properties, and the SDP
 * from its source pad's caps. When the stream is RTP already (from a camera, another server, a
 * file), depayloading it only to payload it again costs a parser and changes the packets. This
 * element gives the library what it reads and passes on the very buffers and lists it gets.
 *
 * Caps from upstream that lack what the SDP needs (payload, ssrc, clock-rate, ...) are held back,
 * with the events behind them, until the first packet, which tells the rest. A static payload type
 * gives media, encoding-name and clock-rate too.
 *
 * It never rewrites a packet: #WeirRtpRelayPay:pt and #WeirRtpRelayPay:mtu can be set, as programs
 * set them on any payloader, but after the first packet #WeirRtpRelayPay:pt tells what is on the
 * wire. What is not RTP is dropped and counted in #WeirRtpRelayPay:stats.
 *
 * Everything runs on the upstream streaming thread. The properties may be read from any.
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
#define MAX_HELD 64 // events; then the caps go as they are
#define WARN_INTERVAL (10 * G_USEC_PER_SEC)

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE (
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS ("application/x-rtp"));
static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS ("application/x-rtp"));

struct _WeirRtpRelayPay {
  GstElement parent;

  GstPad *sinkpad;
  GstPad *srcpad;

  // The streaming thread's.
  GstSegment segment;
  GstCaps *held_caps; // wait for the first packet
  GQueue held_events; // wait for the caps
  gint64 warned_at;   // monotonic time, 0 = never

  // Under the object lock.
  guint mtu;
  guint pt;
  WeirRtp last; // the last packet that went through
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
  // The fields that are signed are so by habit of the RTP elements.
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

// Lets the held caps and events go; `rtp`, if there is a packet, fills what the caps lack.
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

// Notes a packet that goes through; FALSE if it is none and has to be dropped.
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
      GST_WARNING_OBJECT (self, "dropping what is not RTP: %" GST_PTR_FORMAT, buffer);
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

  // The list may be shared: it is made writable only when something has to come out of it.
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
        // Before what comes now, not after it with the next packet.
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
      // Segments die with a flush, caps don't.
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
    // A gap before the first packet tells nobody anything.
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

// ---- properties. All under the object lock ----

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

  GST_DEBUG_CATEGORY_INIT (rtprelaypay_debug, "rtprelaypay", 0, "RTP pass-through payloader");

  gobject_class->set_property = weir_rtp_relay_pay_set_property;
  gobject_class->get_property = weir_rtp_relay_pay_get_property;
  gobject_class->finalize = weir_rtp_relay_pay_finalize;
  element_class->change_state = weir_rtp_relay_pay_change_state;

  g_object_class_install_property (gobject_class, PROP_PT,
      g_param_spec_uint ("pt", "payload type",
          "Payload type of the last packet; before the first one, what was set. Packets are not "
          "changed",
          0, 0x7f, DEFAULT_PT, rw));
  g_object_class_install_property (gobject_class, PROP_MTU,
      g_param_spec_uint ("mtu", "MTU", "Kept for programs that set it. Packets are not changed", 28,
          G_MAXUINT, DEFAULT_MTU, rw));
  g_object_class_install_property (gobject_class, PROP_SSRC,
      g_param_spec_uint ("ssrc", "SSRC", "SSRC of the last packet (4294967295 before the first)", 0,
          G_MAXUINT32, DEFAULT_SSRC, ro));
  g_object_class_install_property (gobject_class, PROP_SEQNUM,
      g_param_spec_uint ("seqnum", "Sequence number", "Sequence number of the last packet", 0,
          G_MAXUINT16, 0, ro));
  g_object_class_install_property (gobject_class, PROP_TIMESTAMP,
      g_param_spec_uint (
          "timestamp", "Timestamp", "RTP timestamp of the last packet", 0, G_MAXUINT32, 0, ro));
  g_object_class_install_property (gobject_class, PROP_SEQNUM_OFFSET,
      g_param_spec_int ("seqnum-offset", "Sequence number offset",
          "Sequence number of the first packet (-1 before it)", -1, G_MAXUINT16,
          DEFAULT_SEQNUM_OFFSET, ro));
  g_object_class_install_property (gobject_class, PROP_TIMESTAMP_OFFSET,
      g_param_spec_uint ("timestamp-offset", "Timestamp offset",
          "RTP timestamp of the first packet (4294967295 before it)", 0, G_MAXUINT32,
          DEFAULT_TIMESTAMP_OFFSET, ro));
  /**
   * WeirRtpRelayPay:stats:
   *
   * A payloader's statistics (clock-rate, running-time in ns, seqnum, timestamp, ssrc, pt,
   * seqnum-offset, timestamp-offset) about the last packet that went through, and two of its own:
   * `packets` (#guint64, passed on) and `not-rtp` (#guint64, dropped).
   */
  g_object_class_install_property (gobject_class, PROP_STATS,
      g_param_spec_boxed ("stats", "Statistics",
          "What a payloader tells of its last packet, and how many packets passed or were dropped",
          GST_TYPE_STRUCTURE, ro));

  weir_element_class_set_default_name (gobject_class);
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "RTP pass-through payloader",
      "Codec/Payloader/Network/RTP",
      "Lets RTP through unchanged and looks like a payloader to an RTSP media factory", "Weir");
}
