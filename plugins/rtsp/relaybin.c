// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relaybin.h"

#include "keyevent.h"
#include "rtp/rtcp_read.h"

// Shortest time between two reports of a stream. A new reader can synchronise its tracks after
// about this time.
#define REPORT_INTERVAL_US G_USEC_PER_SEC
#define REPORT_MAX 320 // longest report, in bytes

// ---- streams ----

// The pads of a stream, and its session: qdata of each of the pads. The pads live as long as the
// element.
typedef struct {
  guint index;
  GstPad *sink, *src;
  GstPad *reports; // NULL until it is requested
  WeirRelaySession *session;
  // For the streaming thread only:
  gint64 report_at;
  GstSegment segment;
  GstClockTime pts; // of the newest packet
  gboolean begun;   // the first events of the reports were pushed; for the thread that pushes them
  // Under the element's object lock:
  gboolean pushing;  // a thread of its own pushes reports
  GstBuffer *report; // it is the next one; or NULL
} RelayStream;

typedef struct {
  GstElement parent;
  WeirRelayReportFunc report;
  gpointer data;
  gboolean may_block;
  GPtrArray *streams; // RelayStream by index, NULL for an unknown one; under the object's lock
} RelayBin;

typedef struct {
  GstElementClass parent_class;
  GObject *(*get_internal_session) (RelayBin *self, guint index);
} RelayBinClass;

GType weir_relay_bin_get_type (void);
G_DEFINE_TYPE (RelayBin, weir_relay_bin, GST_TYPE_ELEMENT)

static GstStaticPadTemplate templates[] = {
  GST_STATIC_PAD_TEMPLATE (
      "send_rtp_sink_%u", GST_PAD_SINK, GST_PAD_REQUEST, GST_STATIC_CAPS ("application/x-rtp")),
  GST_STATIC_PAD_TEMPLATE (
      "send_rtcp_src_%u", GST_PAD_SRC, GST_PAD_REQUEST, GST_STATIC_CAPS ("application/x-rtcp")),
  GST_STATIC_PAD_TEMPLATE (
      "recv_rtcp_sink_%u", GST_PAD_SINK, GST_PAD_REQUEST, GST_STATIC_CAPS ("application/x-rtcp")),
  GST_STATIC_PAD_TEMPLATE (
      "send_rtp_src_%u", GST_PAD_SRC, GST_PAD_SOMETIMES, GST_STATIC_CAPS ("application/x-rtp")),
};

static void
stream_free (gpointer data)
{
  RelayStream *self = data;

  if (!self)
    return;
  g_object_unref (self->session);
  gst_clear_buffer (&self->report);
  g_free (self);
}

static RelayStream *
stream_of (GstPad *pad)
{
  return gst_pad_get_element_private (pad);
}

static RelayStream *
find_stream (RelayBin *self, guint index)
{
  RelayStream *stream = NULL;

  GST_OBJECT_LOCK (self);
  if (index < self->streams->len)
    stream = g_ptr_array_index (self->streams, index);
  GST_OBJECT_UNLOCK (self);
  return stream;
}

// ---- data ----

// Counts the packets of a buffer. Returns TRUE if a report is due.
static gboolean
count (RelayStream *stream, GstBuffer *buffer)
{
  gint64 now = g_get_real_time ();
  gboolean counted = weir_relay_session_count (stream->session, buffer, now);

  // A step of the clock back must not stop the reports.
  return counted && (now >= stream->report_at || now < stream->report_at - REPORT_INTERVAL_US);
}

static void
begin_reports (RelayStream *stream)
{
  GstSegment segment;
  gchar *id = g_strdup_printf ("rtcp-%u", stream->index);
  GstCaps *caps = gst_caps_new_empty_simple ("application/x-rtcp");

  stream->begun = TRUE;
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_pad_push_event (stream->reports, gst_event_new_stream_start (id));
  gst_pad_push_event (stream->reports, gst_event_new_caps (caps));
  gst_pad_push_event (stream->reports, gst_event_new_segment (&segment));
  gst_caps_unref (caps);
  g_free (id);
}

static void
push_report (RelayStream *stream, GstBuffer *report)
{
  if (!stream->begun)
    begin_reports (stream);
  gst_pad_push (stream->reports, report);
}

static void
push_in_own_thread (GstElement *self, gpointer data)
{
  RelayStream *stream = data;
  GstBuffer *report;

  do {
    GST_OBJECT_LOCK (self);
    report = g_steal_pointer (&stream->report);
    stream->pushing = report != NULL;
    GST_OBJECT_UNLOCK (self);
    if (report)
      push_report (stream, report);
  } while (report);
}

// A sink in PAUSED blocks: the streaming thread, which has to bring the other sinks their first
// packets, must not wait there. There is one such thread for each stream at most.
static void
push_apart (RelayBin *self, RelayStream *stream, GstBuffer *report)
{
  GstBuffer *old;
  gboolean starts;

  GST_OBJECT_LOCK (self);
  starts = !stream->pushing;
  old = stream->report;
  stream->report = report;
  stream->pushing = TRUE;
  GST_OBJECT_UNLOCK (self);
  gst_clear_buffer (&old);
  if (starts)
    gst_element_call_async (GST_ELEMENT (self), push_in_own_thread, stream, NULL);
}

static void
send_report (RelayBin *self, RelayStream *stream, gboolean ends)
{
  WeirRelayCounts counts;
  guint8 report[REPORT_MAX];
  gboolean plays;
  gsize len;

  weir_relay_session_get_counts (stream->session, &counts);
  if (!stream->reports || !gst_pad_is_linked (stream->reports) || counts.n_packets == 0)
    return;
  // Before, running times have no meaning.
  plays = GST_STATE (self) == GST_STATE_PLAYING;
  if (self->may_block && !plays && !ends)
    return;
  counts.ends = ends;
  counts.running =
      plays && stream->segment.format == GST_FORMAT_TIME
          ? gst_segment_to_running_time (&stream->segment, GST_FORMAT_TIME, stream->pts)
          : GST_CLOCK_TIME_NONE;
  stream->report_at = counts.arrival + REPORT_INTERVAL_US;
  len = self->report (self->data, stream->index, &counts, report, sizeof report);
  if (len == 0)
    return;
  if (!self->may_block)
    push_report (stream, gst_buffer_new_memdup (report, len));
  else
    push_apart (self, stream, gst_buffer_new_memdup (report, len));
}

static GstFlowReturn
chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  RelayStream *stream = stream_of (pad);
  gboolean due = count (stream, buffer);
  GstFlowReturn ret;

  stream->pts = GST_BUFFER_PTS (buffer);
  ret = gst_pad_push (stream->src, buffer);
  if (due)
    send_report ((RelayBin *) parent, stream, FALSE);
  return ret;
}

static GstFlowReturn
chain_list (GstPad *pad, GstObject *parent, GstBufferList *list)
{
  RelayStream *stream = stream_of (pad);
  gboolean due = FALSE;
  GstFlowReturn ret;

  for (guint i = 0; i < gst_buffer_list_length (list); i++) {
    due |= count (stream, gst_buffer_list_get (list, i));
    stream->pts = GST_BUFFER_PTS (gst_buffer_list_get (list, i));
  }
  ret = gst_pad_push_list (stream->src, list);
  if (due)
    send_report ((RelayBin *) parent, stream, FALSE);
  return ret;
}

static void
note_caps (RelayStream *stream, GstEvent *event)
{
  const GstStructure *structure;
  GstCaps *caps;
  guint ssrc = 0;

  gst_event_parse_caps (event, &caps);
  structure = gst_caps_get_structure (caps, 0);
  gst_structure_get_uint (structure, "ssrc", &ssrc);
  weir_relay_session_set_ssrc (stream->session, ssrc);
}

// A reader that plays on after a flush must not get the last report from before it: that is about
// other times. `may_block`: another thread pushes reports.
static void
flush (RelayStream *stream, gboolean may_block)
{
  gst_segment_init (&stream->segment, GST_FORMAT_UNDEFINED);
  if (may_block)
    return;
  stream->report_at = 0;
  if (!stream->begun)
    return;
  gst_pad_push_event (stream->reports, gst_event_new_flush_start ());
  gst_pad_push_event (stream->reports, gst_event_new_flush_stop (FALSE));
  stream->begun = FALSE;
}

static gboolean
sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  RelayStream *stream = stream_of (pad);
  const GstEventType type = GST_EVENT_TYPE (event);
  gboolean pushed;

  if (type == GST_EVENT_CAPS)
    note_caps (stream, event);
  else if (type == GST_EVENT_SEGMENT)
    gst_event_copy_segment (event, &stream->segment);
  else if (type == GST_EVENT_FLUSH_STOP)
    flush (stream, ((RelayBin *) parent)->may_block);
  pushed = gst_pad_push_event (stream->src, event);
  if (type == GST_EVENT_EOS && pushed)
    send_report ((RelayBin *) parent, stream, TRUE);
  return pushed;
}

static GstFlowReturn
drop_rtcp (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  gst_buffer_unref (buffer);
  return GST_FLOW_OK;
}

static gboolean
drop_rtcp_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  gst_event_unref (event);
  return TRUE;
}

static gboolean
src_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  return gst_pad_push_event (stream_of (pad)->sink, event);
}

static GstIterator *
iterate_links (GstPad *pad, GstObject *parent)
{
  RelayStream *stream = stream_of (pad);
  GValue value = G_VALUE_INIT;
  GstIterator *links;

  g_value_init (&value, GST_TYPE_PAD);
  g_value_set_object (&value, pad == stream->sink ? stream->src : stream->sink);
  links = gst_iterator_new_single (GST_TYPE_PAD, &value);
  g_value_unset (&value);
  return links;
}

static GstIterator *
iterate_no_links (GstPad *pad, GstObject *parent)
{
  return NULL;
}

// ---- pads ----

static GstPad *
new_pad (RelayStream *stream, GstStaticPadTemplate *from, guint index)
{
  GstPadTemplate *template = gst_static_pad_template_get (from);
  gchar *name = g_strdup_printf (
      "%.*s%u", (int) strlen (from->name_template) - 2, from->name_template, index);
  GstPad *pad = gst_pad_new_from_template (template, name);

  gst_pad_set_element_private (pad, stream);
  if (stream) {
    gst_pad_set_iterate_internal_links_function (pad, iterate_links);
    GST_PAD_SET_PROXY_CAPS (pad);
  }
  gst_object_unref (template);
  g_free (name);
  return pad;
}

static GstPad *
add_stream (RelayBin *self, guint index)
{
  RelayStream *stream = g_new0 (RelayStream, 1);

  stream->index = index;
  gst_segment_init (&stream->segment, GST_FORMAT_UNDEFINED);
  stream->pts = GST_CLOCK_TIME_NONE;
  stream->session = weir_relay_session_new ();
  stream->sink = new_pad (stream, &templates[0], index);
  stream->src = new_pad (stream, &templates[3], index);
  gst_pad_set_chain_function (stream->sink, chain);
  gst_pad_set_chain_list_function (stream->sink, chain_list);
  gst_pad_set_event_function (stream->sink, sink_event);
  gst_pad_set_event_function (stream->src, src_event);
  GST_OBJECT_LOCK (self);
  g_ptr_array_set_size (self->streams, (gint) MAX (self->streams->len, index + 1));
  g_ptr_array_index (self->streams, index) = stream;
  GST_OBJECT_UNLOCK (self);
  gst_pad_set_active (stream->src, TRUE);
  gst_element_add_pad (GST_ELEMENT (self), stream->src);
  gst_element_add_pad (GST_ELEMENT (self), stream->sink);
  return stream->sink;
}

// RTCP of readers arrives by weir_relay_bin_take_feedback(), or is read by probes of this pad.
static GstPad *
add_rtcp_pad (RelayBin *self, GstStaticPadTemplate *template, guint index)
{
  RelayStream *stream = find_stream (self, index);
  GstPad *pad = new_pad (NULL, template, index);

  if (stream && template->direction == GST_PAD_SRC)
    stream->reports = pad;
  if (template->direction == GST_PAD_SINK) {
    gst_pad_set_chain_function (pad, drop_rtcp);
    gst_pad_set_event_function (pad, drop_rtcp_event);
  }
  gst_pad_set_iterate_internal_links_function (pad, iterate_no_links);
  gst_pad_set_active (pad, TRUE);
  gst_element_add_pad (GST_ELEMENT (self), pad);
  return pad;
}

static GstPad *
request_new_pad (
    GstElement *element, GstPadTemplate *template, const gchar *name, const GstCaps *caps)
{
  RelayBin *self = (RelayBin *) element;
  const gchar *digits = name ? strrchr (name, '_') : NULL;
  guint64 index;

  if (!digits || !g_ascii_string_to_unsigned (digits + 1, 10, 0, 255, &index, NULL))
    return NULL;
  for (guint i = 0; i < 3; i++) {
    if (!g_str_equal (GST_PAD_TEMPLATE_NAME_TEMPLATE (template), templates[i].name_template))
      continue;
    if (i > 0)
      return add_rtcp_pad (self, &templates[i], (guint) index);
    return find_stream (self, (guint) index) ? NULL : add_stream (self, (guint) index);
  }
  return NULL;
}

// Pads leave with the element, because a keyframe request may be on its way. gst-rtsp-server
// releases them only then.
static void
release_pad (GstElement *element, GstPad *pad)
{
}

// ---- the element ----

static GObject *
get_internal_session (RelayBin *self, guint index)
{
  RelayStream *stream = find_stream (self, index);

  return stream ? g_object_ref (G_OBJECT (stream->session)) : NULL;
}

void
weir_relay_bin_take_feedback (GstElement *self, guint index, const guint8 *data, gsize len)
{
  RelayStream *stream = find_stream ((RelayBin *) self, index);
  WeirRelayCounts counts;

  if (!stream)
    return;
  weir_relay_session_get_counts (stream->session, &counts);
  if (weir_rtcp_asks_key (data, len, counts.ssrc))
    gst_pad_push_event (stream->sink, weir_key_event_new (0));
}

enum { PROP_0, PROP_LATENCY, PROP_DO_RETRANSMISSION, PROP_DO_LOST };

// GstRTSPMedia sets properties of a jitter buffer, which a relay does not have.
static void
ignore_property (GObject *object, guint id, const GValue *value, GParamSpec *spec)
{
}

static void
weir_relay_bin_finalize (GObject *object)
{
  g_ptr_array_unref (((RelayBin *) object)->streams);
  G_OBJECT_CLASS (weir_relay_bin_parent_class)->finalize (object);
}

static void
weir_relay_bin_init (RelayBin *self)
{
  self->streams = g_ptr_array_new_with_free_func (stream_free);
}

static void
install_properties (GObjectClass *klass)
{
  klass->set_property = ignore_property;
  g_object_class_install_property (klass, PROP_LATENCY,
      g_param_spec_uint ("latency", "Latency", "Ignored", 0, G_MAXUINT, 0,
          G_PARAM_WRITABLE | G_PARAM_STATIC_STRINGS));
  g_object_class_install_property (klass, PROP_DO_RETRANSMISSION,
      g_param_spec_boolean ("do-retransmission", "Retransmission", "Ignored", FALSE,
          G_PARAM_WRITABLE | G_PARAM_STATIC_STRINGS));
  g_object_class_install_property (klass, PROP_DO_LOST,
      g_param_spec_boolean (
          "do-lost", "Loss events", "Ignored", FALSE, G_PARAM_WRITABLE | G_PARAM_STATIC_STRINGS));
}

static void
weir_relay_bin_class_init (RelayBinClass *klass)
{
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  install_properties (G_OBJECT_CLASS (klass));
  G_OBJECT_CLASS (klass)->finalize = weir_relay_bin_finalize;
  klass->get_internal_session = get_internal_session;
  element_class->request_new_pad = request_new_pad;
  element_class->release_pad = release_pad;
  for (guint i = 0; i < G_N_ELEMENTS (templates); i++)
    gst_element_class_add_static_pad_template (element_class, &templates[i]);
  gst_element_class_set_static_metadata (element_class, "RTP relay bin", "Filter/Network/RTP",
      "Passes RTP packets on in the place of rtpbin", "Weir");
  g_signal_new ("get-internal-session", G_TYPE_FROM_CLASS (klass),
      G_SIGNAL_RUN_LAST | G_SIGNAL_ACTION, G_STRUCT_OFFSET (RelayBinClass, get_internal_session),
      NULL, NULL, NULL, G_TYPE_OBJECT, 1, G_TYPE_UINT);
  // There is no storage of packets for error correction.
  g_signal_new ("get-storage", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST | G_SIGNAL_ACTION, 0,
      NULL, NULL, NULL, G_TYPE_OBJECT, 1, G_TYPE_UINT);
  g_signal_new ("request-fec-decoder", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL,
      NULL, GST_TYPE_ELEMENT, 1, G_TYPE_UINT);
}

gboolean
weir_is_relay_bin (GstElement *element)
{
  return G_TYPE_CHECK_INSTANCE_TYPE (element, weir_relay_bin_get_type ());
}

GstElement *
weir_relay_bin_new (WeirRelayReportFunc report, gpointer data, gboolean may_block)
{
  RelayBin *self = g_object_new (weir_relay_bin_get_type (), NULL);

  self->report = report;
  self->data = data ? data : self;
  self->may_block = may_block;
  return GST_ELEMENT (self);
}
