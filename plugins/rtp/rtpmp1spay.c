// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * SECTION:element-rtpmp1spay
 * @title: rtpmp1spay
 * @short_description: puts MPEG-1 system streams into RTP packets
 *
 * The packets are those of RFC 2250, section 2, named MP1S: the bytes of the stream, whose tracks
 * stay together. A packet has whole packs, or a part of one pack that does not fit.
 *
 * The times of the packets are the system clock references (SCR) of their packs, from the time of
 * the first one on. Where the SCR jumps, time goes on from the pack before, and the packet has the
 * marker bit.
 *
 * Bytes outside of packs are dropped and counted in #WeirRtpMp1sPay:skipped. A stream without a
 * single pack is an error. The element works on the upstream streaming thread, and holds at most
 * one packet and one buffer.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 filesrc location=tests/data/system.mpg ! video/mpeg,mpegversion=1,systemstream=true ! rtpmp1spay ! rtpmp1sdepay ! capssetter caps=video/mpeg,mpegversion=1,systemstream=true ! mpegpsdemux ! mpegvideoparse ! fakesink
 * ]|
 *
 * Since: 0.1
 */
#include "config.h"

#include "rtpmp1spay.h"

#include "core/codec/mp1s.h"
#include "elementname.h"

#include <gst/base/gstadapter.h>
#include <gst/rtp/rtp.h>

GST_DEBUG_CATEGORY_STATIC (rtpmp1spay_debug);
#define GST_CAT_DEFAULT rtpmp1spay_debug

enum {
  PROP_0,
  PROP_SKIPPED,
};

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK,
    GST_PAD_ALWAYS, GST_STATIC_CAPS ("video/mpeg, mpegversion=(int)1, systemstream=(boolean)true"));
static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS,
        GST_STATIC_CAPS ("application/x-rtp, media=(string)video, payload=(int)[ 96, 127 ], "
                         "clock-rate=(int)90000, encoding-name=(string)MP1S"));

struct _WeirRtpMp1sPay {
  GstRTPBasePayload parent;

  // Streaming thread only.
  GstAdapter *adapter;
  WeirMp1sCut cut;
  gboolean synced;    // a unit begins at the first byte of the adapter, or goes on there
  GstClockTime first; // time of the first pack, or GST_CLOCK_TIME_NONE
  gboolean has_data;  // bytes came in this segment

  // Under the object lock.
  guint64 n_skipped;
};

G_DEFINE_FINAL_TYPE (WeirRtpMp1sPay, weir_rtp_mp1s_pay, GST_TYPE_RTP_BASE_PAYLOAD)
GST_ELEMENT_REGISTER_DEFINE (rtpmp1spay, "rtpmp1spay", GST_RANK_NONE, WEIR_TYPE_RTP_MP1S_PAY)

// ---- data ----

static gboolean
weir_rtp_mp1s_pay_set_caps (GstRTPBasePayload *payload, GstCaps *caps)
{
  gst_rtp_base_payload_set_options (payload, "video", TRUE, "MP1S", WEIR_MP1S_CLOCK);
  return gst_rtp_base_payload_set_outcaps (payload, NULL);
}

// Drops bytes up to the next pack, but keeps what may be the beginning of its header.
static void
find_pack (WeirRtpMp1sPay *self, gboolean at_end)
{
  gsize all = gst_adapter_available (self->adapter), n;

  n = weir_mp1s_find_pack (weir_bytes (gst_adapter_map (self->adapter, all), all));
  gst_adapter_unmap (self->adapter);
  self->synced = n < all;
  if (!self->synced && !at_end)
    n = all - (WEIR_MP1S_PACK_HEADER - 1);
  if (n == 0)
    return;
  GST_WARNING_OBJECT (self, "skipping %" G_GSIZE_FORMAT " bytes outside of packs", n);
  gst_adapter_flush (self->adapter, n);
  GST_OBJECT_LOCK (self);
  self->n_skipped += n;
  GST_OBJECT_UNLOCK (self);
}

static GstFlowReturn
push_packet (WeirRtpMp1sPay *self, const WeirMp1sPayload *part)
{
  GstRTPBasePayload *payload = GST_RTP_BASE_PAYLOAD (self);
  GstBuffer *packet = gst_rtp_base_payload_allocate_output_buffer (payload, 0, 0, 0);
  GstRTPBuffer rtp = GST_RTP_BUFFER_INIT;

  if (!GST_CLOCK_TIME_IS_VALID (self->first))
    self->first = gst_adapter_prev_pts (self->adapter, NULL);
  if (!GST_CLOCK_TIME_IS_VALID (self->first))
    self->first = payload->segment.start;
  gst_rtp_buffer_map (packet, GST_MAP_WRITE, &rtp);
  gst_rtp_buffer_set_marker (&rtp, part->jump);
  gst_rtp_buffer_unmap (&rtp);
  // Rounded up, as the base class rounds the timestamp down.
  GST_BUFFER_PTS (packet) =
      self->first + gst_util_uint64_scale_ceil (part->time, GST_SECOND, WEIR_MP1S_CLOCK);
  packet = gst_buffer_append (packet, gst_adapter_take_buffer_fast (self->adapter, part->len));
  return gst_rtp_base_payload_push (payload, packet);
}

// Sends what can be measured: all at the end of the stream.
static GstFlowReturn
drain (WeirRtpMp1sPay *self, gboolean at_end)
{
  guint room = gst_rtp_buffer_calc_payload_len (
      GST_RTP_BASE_PAYLOAD_MTU (GST_RTP_BASE_PAYLOAD (self)), 0, 0);
  gsize need = room + WEIR_MP1S_PACK_HEADER, all;
  GstFlowReturn ret = GST_FLOW_OK;
  WeirMp1sPayload part;

  while (
      ret == GST_FLOW_OK && (all = gst_adapter_available (self->adapter)) >= (at_end ? 1 : need)) {
    if (!self->synced) {
      find_pack (self, at_end);
      continue;
    }
    all = MIN (all, need);
    self->synced = weir_mp1s_cut_next (
        &self->cut, weir_bytes (gst_adapter_map (self->adapter, all), all), room, &part);
    gst_adapter_unmap (self->adapter);
    if (self->synced)
      ret = push_packet (self, &part);
  }
  return ret;
}

// Sends what is held. What follows is behind a gap.
static GstFlowReturn
end_part (WeirRtpMp1sPay *self)
{
  GstFlowReturn ret = drain (self, TRUE);

  gst_adapter_clear (self->adapter);
  self->cut.left = 0;
  self->synced = FALSE;
  return ret;
}

static GstFlowReturn
weir_rtp_mp1s_pay_handle_buffer (GstRTPBasePayload *payload, GstBuffer *buffer)
{
  WeirRtpMp1sPay *self = WEIR_RTP_MP1S_PAY (payload);
  GstFlowReturn ret = GST_BUFFER_IS_DISCONT (buffer) ? end_part (self) : GST_FLOW_OK;

  self->has_data = TRUE;
  gst_adapter_push (self->adapter, buffer);
  return ret == GST_FLOW_OK ? drain (self, FALSE) : ret;
}

// ---- events and states ----

static void
forget (WeirRtpMp1sPay *self)
{
  gst_adapter_clear (self->adapter);
  self->cut = (WeirMp1sCut) { 0 };
  self->synced = FALSE;
  self->first = GST_CLOCK_TIME_NONE;
  self->has_data = FALSE;
}

static gboolean
weir_rtp_mp1s_pay_sink_event (GstRTPBasePayload *payload, GstEvent *event)
{
  WeirRtpMp1sPay *self = WEIR_RTP_MP1S_PAY (payload);
  const GstSegment *segment;
  GstSegment times;

  switch (GST_EVENT_TYPE (event)) {
    case GST_EVENT_EOS:
      end_part (self);
      if (self->has_data && !self->cut.begun)
        GST_ELEMENT_ERROR (self, STREAM, WRONG_TYPE, (NULL),
            ("the stream ended without a pack of an MPEG-1 system stream"));
      break;
    case GST_EVENT_FLUSH_STOP:
      forget (self);
      break;
    case GST_EVENT_SEGMENT:
      end_part (self);
      forget (self);
      gst_event_parse_segment (event, &segment);
      if (segment->format == GST_FORMAT_TIME)
        break;
      // A file is sent by bytes; our times are those of its packs.
      gst_segment_init (&times, GST_FORMAT_TIME);
      gst_event_unref (event);
      event = gst_event_new_segment (&times);
      break;
    default:
      break;
  }
  return GST_RTP_BASE_PAYLOAD_CLASS (weir_rtp_mp1s_pay_parent_class)->sink_event (payload, event);
}

static GstStateChangeReturn
weir_rtp_mp1s_pay_change_state (GstElement *element, GstStateChange transition)
{
  WeirRtpMp1sPay *self = WEIR_RTP_MP1S_PAY (element);
  GstStateChangeReturn ret =
      GST_ELEMENT_CLASS (weir_rtp_mp1s_pay_parent_class)->change_state (element, transition);

  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) {
    forget (self);
    GST_OBJECT_LOCK (self);
    self->n_skipped = 0;
    GST_OBJECT_UNLOCK (self);
  }
  return ret;
}

static void
weir_rtp_mp1s_pay_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  WeirRtpMp1sPay *self = WEIR_RTP_MP1S_PAY (object);

  switch (id) {
    case PROP_SKIPPED:
      GST_OBJECT_LOCK (self);
      g_value_set_uint64 (value, self->n_skipped);
      GST_OBJECT_UNLOCK (self);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
}

static void
weir_rtp_mp1s_pay_finalize (GObject *object)
{
  g_object_unref (WEIR_RTP_MP1S_PAY (object)->adapter);
  G_OBJECT_CLASS (weir_rtp_mp1s_pay_parent_class)->finalize (object);
}

static void
weir_rtp_mp1s_pay_init (WeirRtpMp1sPay *self)
{
  self->adapter = gst_adapter_new ();
  forget (self);
}

static void
weir_rtp_mp1s_pay_class_init (WeirRtpMp1sPayClass *klass)
{
  GObjectClass *gobject_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstRTPBasePayloadClass *payload_class = GST_RTP_BASE_PAYLOAD_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (rtpmp1spay_debug, "rtpmp1spay", 0, "MPEG-1 system streams into RTP");

  gobject_class->get_property = weir_rtp_mp1s_pay_get_property;
  gobject_class->finalize = weir_rtp_mp1s_pay_finalize;
  element_class->change_state = weir_rtp_mp1s_pay_change_state;
  payload_class->set_caps = weir_rtp_mp1s_pay_set_caps;
  payload_class->handle_buffer = weir_rtp_mp1s_pay_handle_buffer;
  payload_class->sink_event = weir_rtp_mp1s_pay_sink_event;

  /**
   * WeirRtpMp1sPay:skipped:
   *
   * Number of bytes dropped because they do not belong to a pack of an MPEG-1 system stream. Reset
   * when the element goes to READY.
   */
  g_object_class_install_property (gobject_class, PROP_SKIPPED,
      g_param_spec_uint64 ("skipped", "Skipped",
          "Number of bytes dropped because they do not belong to a pack", 0, G_MAXUINT64, 0,
          G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));

  weir_element_class_set_default_name (gobject_class);
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "MPEG-1 system stream payloader",
      "Codec/Payloader/Network/RTP", "Puts MPEG-1 system streams into RTP packets (RFC 2250)",
      "Weir");
}
