// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/loas.h"

#include <errno.h>
#include <gst/base/gstadapter.h>

#include "base/log.h"
#include "codec/latm.h"

#define CAPS "audio/mpeg, mpegversion=(int){ 2, 4 }"
#define HEAD 3 // bytes: the sync word, and the length of what follows

// All fields are the streaming thread's.
typedef struct {
  GstElement parent;
  GstPad *src;
  gboolean is_loas;
  gboolean live;  // the configuration may change to one that RTP has a form for
  gboolean begun; // it has sent caps
  GQueue held;    // events to be sent behind the caps
  GstAdapter *adapter;
  GstClockTime given; // the last time that came with bytes
  GstClockTime next;  // of the next frame, if none comes with it
  WeirLatm latm;
  guint64 n_dropped;
  gint reason; // why the last one was dropped
} Loas;

typedef struct {
  GstElementClass parent_class;
} LoasClass;

GType loas_get_type (void);
G_DEFINE_TYPE (Loas, loas, GST_TYPE_ELEMENT)

static LogLimit dropped = { .burst = 4, .interval_ms = 10000 };

// ---- frames ----

static const gchar *
say (gint reason)
{
  return reason == -ENOTSUP ? "RTP here has no form for its configuration" : "it is malformed";
}

// Counts a frame that RTP has no form for, or that is malformed.
static GstFlowReturn
drop (Loas *self, gint reason)
{
  if (!self->live && !self->begun && reason == -ENOTSUP) {
    gst_pad_push_event (self->src, gst_event_new_eos ());
    return GST_FLOW_EOS;
  }
  if (self->live && self->n_dropped == 0)
    log_event_limited (&dropped, "LATM: sound is dropped: %s", say (reason));
  self->n_dropped++;
  self->reason = reason;
  return GST_FLOW_OK;
}

// Sends the configuration as caps, and what waits for them.
static void
send_caps (Loas *self)
{
  GstBuffer *config = gst_buffer_new_memdup (self->latm.config, self->latm.n_config);
  GstCaps *caps = gst_caps_new_simple ("audio/mpeg", "mpegversion", G_TYPE_INT, 4, "stream-format",
      G_TYPE_STRING, "raw", "framed", G_TYPE_BOOLEAN, TRUE, "codec_data", GST_TYPE_BUFFER, config,
      NULL);
  GstEvent *event;

  gst_pad_push_event (self->src, gst_event_new_caps (caps));
  self->begun = TRUE;
  while ((event = g_queue_pop_head (&self->held)))
    gst_pad_push_event (self->src, event);
  gst_caps_unref (caps);
  gst_buffer_unref (config);
}

static GstFlowReturn
send_frames (Loas *self, const guint8 *bytes, const gsize *sizes, guint n)
{
  const GstClockTime duration =
      gst_util_uint64_scale (self->latm.n_samples, GST_SECOND, self->latm.rate);
  GstFlowReturn flow = GST_FLOW_OK;

  for (guint i = 0; i < n && flow == GST_FLOW_OK; i++) {
    GstBuffer *frame = gst_buffer_new_memdup (bytes, sizes[i]);

    GST_BUFFER_PTS (frame) = self->next;
    GST_BUFFER_DURATION (frame) = duration;
    if (GST_CLOCK_TIME_IS_VALID (self->next))
      self->next += duration;
    bytes += sizes[i];
    flow = gst_pad_push (self->src, frame);
  }
  return flow;
}

static GstFlowReturn
take_frame (Loas *self, const guint8 *bytes, gsize len)
{
  gsize sizes[WEIR_LATM_FRAMES_MAX];
  guint8 *out = g_malloc (len);
  GstFlowReturn flow = GST_FLOW_OK;
  bool changed;
  gint n;

  n = weir_latm_read (&self->latm, bytes, len, out, sizes, &changed);
  if (changed)
    send_caps (self);
  if (n > 0) {
    flow = send_frames (self, out, sizes, (guint) n);
  } else if (n != -EAGAIN) { // the stream is joined between two configurations
    flow = drop (self, n);
  }
  g_free (out);
  return flow;
}

// Takes the time that came with the bytes from which the next frame begins.
static void
take_time (Loas *self)
{
  const GstClockTime time = gst_adapter_prev_pts (self->adapter, NULL);

  if (GST_CLOCK_TIME_IS_VALID (time) && time != self->given)
    self->given = self->next = time;
}

static gboolean
is_sync (const guint8 *bytes)
{
  return bytes[0] == 0x56 && bytes[1] >> 5 == 7;
}

// Takes what is there of a frame, or skips bytes that belong to none. Returns FALSE if more bytes
// are needed. A frame that begins where the one before ends needs no other behind it.
static gboolean
take_next (Loas *self, GstFlowReturn *flow)
{
  const gsize available = gst_adapter_available (self->adapter);
  const guint8 *bytes = available >= HEAD ? gst_adapter_map (self->adapter, available) : NULL;
  gsize skip = 0, len = 0;

  if (!bytes)
    return FALSE;
  while (skip + HEAD <= available && !is_sync (bytes + skip))
    skip++;
  if (skip == 0)
    len = HEAD + ((gsize) (bytes[1] & 0x1f) << 8 | bytes[2]);
  if (len > 0 && len <= available) {
    take_time (self);
    *flow = take_frame (self, bytes, len);
    skip = len;
  }
  gst_adapter_unmap (self->adapter);
  gst_adapter_flush (self->adapter, skip);
  return skip > 0;
}

static GstFlowReturn
loas_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  Loas *self = (Loas *) parent;
  GstFlowReturn flow = GST_FLOW_OK;

  if (!self->is_loas)
    return gst_pad_push (self->src, buffer);
  if (GST_BUFFER_IS_DISCONT (buffer))
    gst_adapter_clear (self->adapter);
  gst_adapter_push (self->adapter, buffer);
  while (flow == GST_FLOW_OK && take_next (self, &flow))
    continue;
  return flow;
}

// ---- events ----

static void
forget (Loas *self)
{
  gst_adapter_clear (self->adapter);
  self->given = self->next = GST_CLOCK_TIME_NONE;
}

static gboolean
take_caps (Loas *self, GstEvent *event)
{
  const gchar *format;
  GstCaps *caps;

  gst_event_parse_caps (event, &caps);
  format = gst_structure_get_string (gst_caps_get_structure (caps, 0), "stream-format");
  self->is_loas = !g_strcmp0 (format, "loas");
  if (!self->is_loas) {
    self->begun = TRUE;
    return gst_pad_push_event (self->src, event);
  }
  self->latm = (WeirLatm) { 0 };
  gst_event_unref (event);
  return TRUE;
}

static gboolean
loas_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  Loas *self = (Loas *) parent;
  const GstEventType type = GST_EVENT_TYPE (event);

  if (type == GST_EVENT_CAPS)
    return take_caps (self, event);
  if (type == GST_EVENT_FLUSH_STOP || type == GST_EVENT_SEGMENT)
    forget (self);
  // Sticky events may not come before the caps, but for the start of the stream.
  if (self->is_loas && !self->begun && GST_EVENT_IS_STICKY (event) && type > GST_EVENT_CAPS
      && type != GST_EVENT_EOS) {
    g_queue_push_tail (&self->held, event);
    return TRUE;
  }
  return gst_pad_event_default (pad, parent, event);
}

// ---- construction ----

static GstStateChangeReturn
loas_change_state (GstElement *element, GstStateChange change)
{
  Loas *self = (Loas *) element;
  GstStateChangeReturn result =
      GST_ELEMENT_CLASS (loas_parent_class)->change_state (element, change);

  if (change == GST_STATE_CHANGE_PAUSED_TO_READY) {
    if (self->n_dropped > 0)
      log_event_limited (&dropped, "LATM: dropped %" G_GUINT64_FORMAT " frames of sound: %s",
          self->n_dropped, say (self->reason));
    g_queue_clear_full (&self->held, (GDestroyNotify) gst_event_unref);
    forget (self);
    self->latm = (WeirLatm) { 0 };
    self->is_loas = self->begun = FALSE;
    self->n_dropped = 0;
  }
  return result;
}

static void
loas_init (Loas *self)
{
  GstElementClass *klass = GST_ELEMENT_GET_CLASS (self);
  GstPad *sink =
      gst_pad_new_from_template (gst_element_class_get_pad_template (klass, "sink"), "sink");

  g_queue_init (&self->held);
  self->adapter = gst_adapter_new ();
  forget (self);
  gst_pad_set_chain_function (sink, loas_chain);
  gst_pad_set_event_function (sink, loas_event);
  gst_element_add_pad (GST_ELEMENT (self), sink);
  self->src = gst_pad_new_from_template (gst_element_class_get_pad_template (klass, "src"), "src");
  gst_pad_use_fixed_caps (self->src);
  gst_element_add_pad (GST_ELEMENT (self), self->src);
}

static void
loas_finalize (GObject *object)
{
  g_object_unref (((Loas *) object)->adapter);
  G_OBJECT_CLASS (loas_parent_class)->finalize (object);
}

static void
loas_class_init (LoasClass *klass)
{
  static GstStaticPadTemplate sink =
      GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (CAPS));
  static GstStaticPadTemplate src =
      GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (CAPS));
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = loas_finalize;
  element_class->change_state = loas_change_state;
  gst_element_class_add_static_pad_template (element_class, &sink);
  gst_element_class_add_static_pad_template (element_class, &src);
  gst_element_class_set_static_metadata (
      element_class, "LOAS reader", "Codec/Parser/Audio", "Takes AAC out of LOAS", "Weir");
}

void
loas_set_live (GstElement *branch)
{
  Loas *self = (Loas *) gst_bin_get_by_name (GST_BIN (branch), LOAS_NAME);

  if (self)
    self->live = TRUE;
  gst_clear_object (&self);
}

void
loas_register (void)
{
  static gsize once;

  if (g_once_init_enter (&once)) {
    gst_element_register (NULL, LOAS_ELEMENT, GST_RANK_NONE, loas_get_type ());
    g_once_init_leave (&once, 1);
  }
}
