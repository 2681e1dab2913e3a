// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * SECTION:element-rtpmpegvpay
 * @title: rtpmpegvpay
 * @short_description: puts MPEG-1 and MPEG-2 video into RTP packets
 *
 * The packets are those of RFC 2250, section 3: cut at slices, each with a header that describes
 * its picture, so that a receiver which loses a packet continues at the next slice. The `rtpmpvpay`
 * of GStreamer writes this header as zeros, cuts anywhere, and takes MPEG-2 only.
 *
 * A slice that fits into a packet is not cut. The marker bit ends a buffer, which `mpegvideoparse`
 * makes one frame. The optional extension of the header for MPEG-2 (RFC 2250, section 3.4.1) is not
 * sent; for MPEG-2, the bits AN and N say whether the picture header differs from that of the last
 * picture of the same type.
 *
 * A frame without a PTS, as in most of an MPEG-1 program stream and in all of an elementary stream,
 * gets one from its temporal reference and the last PTS that came, or the first DTS.
 *
 * Buffers without a picture header, before the first buffer with one, are dropped and counted in
 * #WeirRtpMpegVPay:dropped. The element works on the upstream streaming thread.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=60 ! mpeg2enc ! mpegvideoparse ! rtpmpegvpay ! rtpmpvdepay ! mpegvideoparse ! fakesink
 * ]|
 *
 * Since: 0.1
 */
#include "config.h"

#include "rtpmpegvpay.h"

#include "core/codec/mpvcut.h"
#include "core/codec/mpvtimes.h"
#include "elementname.h"

#include <gst/rtp/rtp.h>

#define DURATION_MAX (10 * GST_SECOND) // of a frame

GST_DEBUG_CATEGORY_STATIC (rtpmpegvpay_debug);
#define GST_CAT_DEFAULT rtpmpegvpay_debug

enum {
  PROP_0,
  PROP_DROPPED,
};

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
        GST_STATIC_CAPS ("video/mpeg, mpegversion=(int){ 1, 2 }, systemstream=(boolean)false, "
                         "parsed=(boolean)true"));
static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS,
        GST_STATIC_CAPS ("application/x-rtp, media=(string)video, payload=(int)32, "
                         "clock-rate=(int)90000, encoding-name=(string)MPV; "
                         "application/x-rtp, media=(string)video, payload=(int)[ 96, 127 ], "
                         "clock-rate=(int)90000, encoding-name=(string)MPV"));

struct _WeirRtpMpegVPay {
  GstRTPBasePayload parent;

  // Streaming thread only.
  WeirMpvCut cut;
  WeirMpvTimes times;

  // Under the object lock.
  guint64 n_dropped;
};

G_DEFINE_FINAL_TYPE (WeirRtpMpegVPay, weir_rtp_mpeg_v_pay, GST_TYPE_RTP_BASE_PAYLOAD)
GST_ELEMENT_REGISTER_DEFINE (rtpmpegvpay, "rtpmpegvpay", GST_RANK_NONE, WEIR_TYPE_RTP_MPEG_V_PAY)

// ---- data ----

static gboolean
weir_rtp_mpeg_v_pay_set_caps (GstRTPBasePayload *payload, GstCaps *caps)
{
  gst_rtp_base_payload_set_options (
      payload, "video", payload->pt != GST_RTP_PAYLOAD_MPV, "MPV", 90000);
  return gst_rtp_base_payload_set_outcaps (payload, NULL);
}

// Returns a packet with `part` of the frame, whose memory it shares.
static GstBuffer *
make_packet (GstRTPBasePayload *payload, GstBuffer *frame, const WeirMpvPayload *part, gsize offset)
{
  GstBuffer *packet =
      gst_rtp_base_payload_allocate_output_buffer (payload, WEIR_MPV_HEADER_SIZE, 0, 0);
  GstRTPBuffer rtp = GST_RTP_BUFFER_INIT;

  gst_rtp_buffer_map (packet, GST_MAP_WRITE, &rtp);
  memcpy (gst_rtp_buffer_get_payload (&rtp), part->header, WEIR_MPV_HEADER_SIZE);
  gst_rtp_buffer_set_marker (&rtp, part->last);
  gst_rtp_buffer_unmap (&rtp);
  if (part->last)
    GST_BUFFER_FLAG_SET (packet, GST_BUFFER_FLAG_MARKER);
  if (offset > 0 || GST_BUFFER_FLAG_IS_SET (frame, GST_BUFFER_FLAG_DELTA_UNIT))
    GST_BUFFER_FLAG_SET (packet, GST_BUFFER_FLAG_DELTA_UNIT);
  GST_BUFFER_PTS (packet) = GST_BUFFER_PTS (frame);
  GST_BUFFER_DTS (packet) = GST_BUFFER_DTS (frame);
  gst_buffer_copy_into (packet, frame, GST_BUFFER_COPY_MEMORY, offset, part->len);
  return packet;
}

static void
count_dropped (WeirRtpMpegVPay *self, GstBuffer *frame)
{
  GST_WARNING_OBJECT (
      self, "dropping a buffer before the first picture header: %" GST_PTR_FORMAT, frame);
  GST_OBJECT_LOCK (self);
  self->n_dropped++;
  GST_OBJECT_UNLOCK (self);
}

// Sets the PTS of a frame that has none. Takes the frame and returns it.
static GstBuffer *
complete_times (WeirRtpMpegVPay *self, GstBuffer *frame)
{
  gint64 duration = (gint64) MIN (GST_BUFFER_DURATION (frame), DURATION_MAX), pts;
  gboolean has_pts = GST_BUFFER_PTS_IS_VALID (frame);
  GstClockTime given = has_pts ? GST_BUFFER_PTS (frame) : GST_BUFFER_DTS (frame);
  GstMapInfo map;

  if (!GST_BUFFER_DURATION_IS_VALID (frame) || !gst_buffer_map (frame, &map, GST_MAP_READ))
    return frame;
  if (has_pts || !weir_mpv_times_find (&self->times, map.data, map.size, duration, &pts)) {
    pts = (gint64) given; // negative if there is none
    if (pts >= 0)
      weir_mpv_times_note (&self->times, map.data, map.size, pts, duration);
  }
  gst_buffer_unmap (frame, &map);
  if (has_pts || pts < 0)
    return frame;
  frame = gst_buffer_make_writable (frame);
  GST_BUFFER_PTS (frame) = (GstClockTime) pts;
  return frame;
}

static GstFlowReturn
weir_rtp_mpeg_v_pay_handle_buffer (GstRTPBasePayload *payload, GstBuffer *frame)
{
  WeirRtpMpegVPay *self = WEIR_RTP_MPEG_V_PAY (payload);
  guint room = gst_rtp_buffer_calc_payload_len (GST_RTP_BASE_PAYLOAD_MTU (payload), 0, 0)
               - WEIR_MPV_HEADER_SIZE;
  GstBufferList *packets;
  WeirMpvPayload part;
  GstMapInfo map;

  frame = complete_times (self, frame);
  if (!gst_buffer_map (frame, &map, GST_MAP_READ)) {
    GST_ELEMENT_ERROR (self, RESOURCE, READ, (NULL), ("cannot map a buffer for reading"));
    gst_buffer_unref (frame);
    return GST_FLOW_ERROR;
  }
  packets = gst_buffer_list_new_sized ((guint) (map.size / room + 1));
  if (!weir_mpv_cut_begin (&self->cut, map.data, map.size, room))
    count_dropped (self, frame);
  while (weir_mpv_cut_next (&self->cut, &part))
    gst_buffer_list_add (
        packets, make_packet (payload, frame, &part, (gsize) (part.data - map.data)));
  gst_buffer_unmap (frame, &map);
  gst_buffer_unref (frame);
  if (gst_buffer_list_length (packets) > 0)
    return gst_rtp_base_payload_push_list (payload, packets);
  gst_buffer_list_unref (packets);
  return GST_FLOW_OK;
}

// ---- events and states ----

static void
forget (WeirRtpMpegVPay *self)
{
  self->cut = (WeirMpvCut) { 0 };
  self->times = (WeirMpvTimes) { 0 };
}

static gboolean
weir_rtp_mpeg_v_pay_sink_event (GstRTPBasePayload *payload, GstEvent *event)
{
  // What follows a flush is another part of the stream.
  if (GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_STOP)
    forget (WEIR_RTP_MPEG_V_PAY (payload));
  return GST_RTP_BASE_PAYLOAD_CLASS (weir_rtp_mpeg_v_pay_parent_class)->sink_event (payload, event);
}

static GstStateChangeReturn
weir_rtp_mpeg_v_pay_change_state (GstElement *element, GstStateChange transition)
{
  WeirRtpMpegVPay *self = WEIR_RTP_MPEG_V_PAY (element);
  GstStateChangeReturn ret =
      GST_ELEMENT_CLASS (weir_rtp_mpeg_v_pay_parent_class)->change_state (element, transition);

  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) {
    forget (self);
    GST_OBJECT_LOCK (self);
    self->n_dropped = 0;
    GST_OBJECT_UNLOCK (self);
  }
  return ret;
}

static void
weir_rtp_mpeg_v_pay_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  WeirRtpMpegVPay *self = WEIR_RTP_MPEG_V_PAY (object);

  switch (id) {
    case PROP_DROPPED:
      GST_OBJECT_LOCK (self);
      g_value_set_uint64 (value, self->n_dropped);
      GST_OBJECT_UNLOCK (self);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
}

static void
weir_rtp_mpeg_v_pay_init (WeirRtpMpegVPay *self)
{
  GST_RTP_BASE_PAYLOAD_PT (self) = GST_RTP_PAYLOAD_MPV;
}

static void
weir_rtp_mpeg_v_pay_class_init (WeirRtpMpegVPayClass *klass)
{
  GObjectClass *gobject_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstRTPBasePayloadClass *payload_class = GST_RTP_BASE_PAYLOAD_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (rtpmpegvpay_debug, "rtpmpegvpay", 0, "MPEG-1 and MPEG-2 video into RTP");

  gobject_class->get_property = weir_rtp_mpeg_v_pay_get_property;
  element_class->change_state = weir_rtp_mpeg_v_pay_change_state;
  payload_class->set_caps = weir_rtp_mpeg_v_pay_set_caps;
  payload_class->handle_buffer = weir_rtp_mpeg_v_pay_handle_buffer;
  payload_class->sink_event = weir_rtp_mpeg_v_pay_sink_event;

  /**
   * WeirRtpMpegVPay:dropped:
   *
   * Number of buffers dropped because no picture header came in or before them: RFC 2250 has no
   * header for their packets. Reset when the element goes to READY.
   */
  g_object_class_install_property (gobject_class, PROP_DROPPED,
      g_param_spec_uint64 ("dropped", "Dropped",
          "Number of buffers dropped because they came before the first picture header", 0,
          G_MAXUINT64, 0, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));

  weir_element_class_set_default_name (gobject_class);
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "MPEG-1 and MPEG-2 video payloader",
      "Codec/Payloader/Network/RTP", "Puts MPEG-1 and MPEG-2 video into RTP packets (RFC 2250)",
      "Weir");
}
