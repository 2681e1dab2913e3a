// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * SECTION:element-rtprestamp
 * @title: rtprestamp
 * @short_description: makes the RTP timestamps of a stream increase steadily
 *
 * With some sources the RTP timestamps jump, go back, stand still while pictures continue, or start
 * again with each connection. Receivers then wait for a time far ahead, or drop packets that seem
 * long past. This element repairs such faults: at a fault, the timestamp increases by the time
 * passed between the arrivals of the two frames, by the pipeline's clock. Between two faults, the
 * differences between timestamps stay unchanged.
 *
 * Only the timestamp in the RTP header is rewritten, and only if it changes: a faultless stream
 * passes as the same buffers. Four things are faults: a step back; a step ahead that is greater
 * than the time passed plus #WeirRtpRestamp:limit; a step that is less than the time passed minus
 * the limit (while timestamps then stand still, each frame gets the time of its arrival); and a
 * change of SSRC.
 *
 * Do not use it on a stream with B-frames, whose timestamps go back by design. Sender reports refer
 * to the original timestamps, so an element that synchronises tracks by sender reports must come
 * before this one.
 *
 * Put the element where packets arrive at the rate at which they were sent, before any element that
 * collects or paces them.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=60 ! vp8enc ! rtpvp8pay ! rtprestamp ! rtpvp8depay ! vp8dec ! fakesink
 * ]|
 *
 * Since: 0.1
 */
#include "config.h"

#include "rtprestamp.h"

#include "core/rtp/restamp.h"
#include "elementname.h"
#include "rtpbuffer.h"

GST_DEBUG_CATEGORY_STATIC (rtprestamp_debug);
#define GST_CAT_DEFAULT rtprestamp_debug

enum {
  PROP_0,
  PROP_LIMIT,
  PROP_STATS,
};

#define DEFAULT_LIMIT (2 * GST_SECOND)
#define MAX_LIMIT (60 * GST_SECOND)

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE (
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS ("application/x-rtp"));
static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS ("application/x-rtp"));

struct _WeirRtpRestamp {
  GstElement parent;

  GstPad *srcpad;

  // Under the object lock.
  WeirRestamp restamp;
  guint64 n_not_rtp;
};

G_DEFINE_FINAL_TYPE (WeirRtpRestamp, weir_rtp_restamp, GST_TYPE_ELEMENT)
GST_ELEMENT_REGISTER_DEFINE (rtprestamp, "rtprestamp", GST_RANK_NONE, WEIR_TYPE_RTP_RESTAMP)

// ---- data ----

static gint64
read_clock (WeirRtpRestamp *self)
{
  GstClock *clock = gst_element_get_clock (GST_ELEMENT (self));
  gint64 now = clock ? (gint64) gst_clock_get_time (clock) : g_get_monotonic_time () * 1000;

  gst_clear_object (&clock);
  return now;
}

// Returns TRUE if the packet needs another timestamp, and sets it in `*timestamp`. A buffer that is
// not RTP is counted and stays unchanged. `now` is in ns.
static gboolean
map_packet (WeirRtpRestamp *self, GstBuffer *buffer, gint64 now, guint32 *timestamp)
{
  WeirRtp rtp;
  gboolean is_rtp = weir_rtp_buffer_read (buffer, &rtp);

  GST_OBJECT_LOCK (self);
  if (is_rtp)
    *timestamp = weir_restamp_map (&self->restamp, &rtp, now);
  else
    self->n_not_rtp++;
  GST_OBJECT_UNLOCK (self);
  return is_rtp && *timestamp != rtp.timestamp;
}

static GstBuffer *
write_timestamp (GstBuffer *buffer, guint32 timestamp)
{
  guint8 bytes[4];

  GST_WRITE_UINT32_BE (bytes, timestamp);
  buffer = gst_buffer_make_writable (buffer);
  gst_buffer_fill (buffer, 4, bytes, sizeof bytes);
  return buffer;
}

static GstFlowReturn
weir_rtp_restamp_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  WeirRtpRestamp *self = WEIR_RTP_RESTAMP (parent);
  guint32 timestamp;

  if (map_packet (self, buffer, read_clock (self), &timestamp))
    buffer = write_timestamp (buffer, timestamp);
  return gst_pad_push (self->srcpad, buffer);
}

static GstFlowReturn
weir_rtp_restamp_chain_list (GstPad *pad, GstObject *parent, GstBufferList *list)
{
  WeirRtpRestamp *self = WEIR_RTP_RESTAMP (parent);
  gint64 now = read_clock (self);

  for (guint i = 0; i < gst_buffer_list_length (list); i++) {
    guint32 timestamp;

    if (!map_packet (self, gst_buffer_list_get (list, i), now, &timestamp))
      continue;
    list = gst_buffer_list_make_writable (list);
    write_timestamp (gst_buffer_list_get_writable (list, i), timestamp);
  }
  return gst_pad_push_list (self->srcpad, list);
}

// ---- events and states ----

static void
restamp_begin (WeirRtpRestamp *self, GstCaps *caps)
{
  GstStructure *s = gst_caps_get_structure (caps, 0);
  gint clock_rate = 0;

  gst_structure_get_int (s, "clock-rate", &clock_rate);
  GST_OBJECT_LOCK (self);
  // Later caps, perhaps with a different seqnum-offset, belong to the same stream.
  if (!self->restamp.begun)
    weir_restamp_init (&self->restamp, (guint32) MAX (clock_rate, 0), self->restamp.limit,
        g_strcmp0 (gst_structure_get_string (s, "media"), "audio") != 0);
  GST_OBJECT_UNLOCK (self);
}

static gboolean
weir_rtp_restamp_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstCaps *caps;

  if (GST_EVENT_TYPE (event) == GST_EVENT_CAPS) {
    gst_event_parse_caps (event, &caps);
    restamp_begin (WEIR_RTP_RESTAMP (parent), caps);
  }
  return gst_pad_event_default (pad, parent, event);
}

static GstStateChangeReturn
weir_rtp_restamp_change_state (GstElement *element, GstStateChange transition)
{
  WeirRtpRestamp *self = WEIR_RTP_RESTAMP (element);
  GstStateChangeReturn ret =
      GST_ELEMENT_CLASS (weir_rtp_restamp_parent_class)->change_state (element, transition);

  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) {
    GST_OBJECT_LOCK (self);
    weir_restamp_init (&self->restamp, 0, self->restamp.limit, TRUE);
    self->n_not_rtp = 0;
    GST_OBJECT_UNLOCK (self);
  }
  return ret;
}

// ---- properties. Call with the object lock ----

static GstStructure *
restamp_make_stats (WeirRtpRestamp *self)
{
  const guint64 *count = self->restamp.count;
  guint64 n_packets = self->restamp.n_late;

  for (guint i = 0; i < WEIR_RESTAMP_N_FAULTS; i++)
    n_packets += count[i];
  return gst_structure_new ("application/x-weir-rtprestamp-stats", "packets", G_TYPE_UINT64,
      n_packets, "jumps", G_TYPE_UINT64, count[WEIR_RESTAMP_JUMP], "steps-back", G_TYPE_UINT64,
      count[WEIR_RESTAMP_BACK], "stalls", G_TYPE_UINT64, count[WEIR_RESTAMP_STALL], "sources",
      G_TYPE_UINT64, count[WEIR_RESTAMP_SOURCE], "late", G_TYPE_UINT64, self->restamp.n_late,
      "not-rtp", G_TYPE_UINT64, self->n_not_rtp, NULL);
}

static void
weir_rtp_restamp_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  WeirRtpRestamp *self = WEIR_RTP_RESTAMP (object);

  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_LIMIT:
      self->restamp.limit = (gint64) g_value_get_uint64 (value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
weir_rtp_restamp_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  WeirRtpRestamp *self = WEIR_RTP_RESTAMP (object);

  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_LIMIT:
      g_value_set_uint64 (value, (guint64) self->restamp.limit);
      break;
    case PROP_STATS:
      g_value_take_boxed (value, restamp_make_stats (self));
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
weir_rtp_restamp_init (WeirRtpRestamp *self)
{
  GstPad *sinkpad = gst_pad_new_from_static_template (&sink_template, "sink");

  weir_restamp_init (&self->restamp, 0, DEFAULT_LIMIT, TRUE);
  gst_pad_set_chain_function (sinkpad, weir_rtp_restamp_chain);
  gst_pad_set_chain_list_function (sinkpad, weir_rtp_restamp_chain_list);
  gst_pad_set_event_function (sinkpad, weir_rtp_restamp_sink_event);
  GST_PAD_SET_PROXY_CAPS (sinkpad);
  GST_PAD_SET_PROXY_ALLOCATION (sinkpad);
  gst_element_add_pad (GST_ELEMENT (self), sinkpad);

  self->srcpad = gst_pad_new_from_static_template (&src_template, "src");
  GST_PAD_SET_PROXY_CAPS (self->srcpad);
  gst_element_add_pad (GST_ELEMENT (self), self->srcpad);
}

static void
weir_rtp_restamp_class_init (WeirRtpRestampClass *klass)
{
  GObjectClass *gobject_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (rtprestamp_debug, "rtprestamp", 0, "RTP timestamp repair");

  gobject_class->set_property = weir_rtp_restamp_set_property;
  gobject_class->get_property = weir_rtp_restamp_get_property;
  element_class->change_state = weir_rtp_restamp_change_state;

  /**
   * WeirRtpRestamp:limit:
   *
   * Largest difference in ns between the step of the timestamp and the time passed since the last
   * frame that is not a fault. Set it above the longest time for which the network may delay a
   * frame.
   */
  g_object_class_install_property (gobject_class, PROP_LIMIT,
      g_param_spec_uint64 ("limit", "Limit",
          "Largest difference in ns between timestamps and arrival times that is not a fault", 0,
          MAX_LIMIT, DEFAULT_LIMIT,
          G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING));
  /**
   * WeirRtpRestamp:stats:
   *
   * Counts, all #guint64: `packets`, RTP packets; the repaired faults `jumps`, `steps-back`,
   * `stalls` (one for each frame while timestamps stand still) and `sources` (changes of SSRC);
   * `late`, packets that arrived after one with a higher sequence number; `not-rtp`, buffers that
   * are not RTP and passed unchanged.
   */
  g_object_class_install_property (gobject_class, PROP_STATS,
      g_param_spec_boxed ("stats", "Statistics", "Number of packets, and of repaired faults",
          GST_TYPE_STRUCTURE, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));

  weir_element_class_set_default_name (gobject_class);
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "RTP restamper", "Filter/Network/RTP",
      "Makes the RTP timestamps of a stream increase steadily", "Weir");
}
