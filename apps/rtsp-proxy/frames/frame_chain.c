// SPDX-License-Identifier: LGPL-2.1-or-later
#include "frames/frame_chain.h"

#include "base/element.h"
#include "base/key_event.h"

struct _FrameChain {
  const FrameChainCallbacks *callbacks;
  gpointer owner;
  GstElement *bin;
  GstElement *filter; // the bin's; NULL: none
  GstPad *in, *out;   // before the first element, and behind the last one
  GstCaps *packets;

  // Used while a packet passes.
  GstCaps *caps; // of the frames
  gboolean lost, begins;
};

// ---- behind the parser ----

static gboolean
on_out_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  FrameChain *self = gst_pad_get_element_private (pad);
  GstCaps *caps;

  if (GST_EVENT_TYPE (event) == GST_EVENT_CAPS) {
    gst_event_parse_caps (event, &caps);
    gst_caps_replace (&self->caps, caps);
  }
  gst_event_unref (event);
  return TRUE;
}

static GstFlowReturn
on_out_frame (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  FrameChain *self = gst_pad_get_element_private (pad);

  // rtpmp4gdepay knows the times of several frames in one packet from the second packet on.
  if (self->caps && GST_BUFFER_PTS_IS_VALID (buffer) && gst_buffer_get_size (buffer) > 0) {
    const Frame frame = { buffer, (gint64) GST_BUFFER_PTS (buffer) - FRAME_CHAIN_START,
      !GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_DELTA_UNIT), self->lost, self->begins };

    self->lost = FALSE;
    self->callbacks->frame (self->owner, self->caps, &frame);
  }
  gst_buffer_unref (buffer);
  return GST_FLOW_OK;
}

// ---- between depayloader and parser ----

// A parser may change these flags.
static GstPadProbeReturn
on_depayloaded (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  FrameChain *self = data;
  GstBuffer *buffer = info->type & GST_PAD_PROBE_TYPE_BUFFER_LIST
                          ? gst_buffer_list_get (GST_PAD_PROBE_INFO_BUFFER_LIST (info), 0)
                          : GST_PAD_PROBE_INFO_BUFFER (info);

  self->lost |= GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_DISCONT);
  self->begins = !GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_DELTA_UNIT);
  return GST_PAD_PROBE_OK;
}

// ---- before the depayloader ----

static gboolean
on_in_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  FrameChain *self = gst_pad_get_element_private (pad);

  if (key_event_is (event))
    self->callbacks->wants_key (self->owner);
  gst_event_unref (event);
  return TRUE;
}

static gboolean
on_in_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  if (GST_QUERY_TYPE (query) != GST_QUERY_LATENCY)
    return FALSE;
  gst_query_set_latency (query, TRUE, 0, GST_CLOCK_TIME_NONE);
  return TRUE;
}

void
frame_chain_push (FrameChain *self, GstBuffer *packet, gint64 time)
{
  GstFlowReturn ret;

  packet = gst_buffer_make_writable (packet);
  GST_BUFFER_PTS (packet) = GST_BUFFER_DTS (packet) =
      (GstClockTime) MAX (time + FRAME_CHAIN_START, 0);
  ret = gst_pad_push (self->in, packet);
  // An element that fails says why, before. Nobody tells that it takes no such caps.
  if (ret <= GST_FLOW_NOT_NEGOTIATED && !self->caps)
    self->callbacks->failed (self->owner, "its packets are not as their description says");
}

void
frame_chain_start (FrameChain *self)
{
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_pad_set_active (self->out, TRUE);
  gst_element_set_state (self->bin, GST_STATE_PLAYING);
  gst_pad_set_active (self->in, TRUE);
  gst_pad_push_event (self->in, gst_event_new_stream_start ("frames"));
  gst_pad_push_event (self->in, gst_event_new_caps (self->packets));
  gst_pad_push_event (self->in, gst_event_new_segment (&segment));
}

void
frame_chain_stop (FrameChain *self)
{
  gst_pad_set_active (self->in, FALSE);
  gst_element_set_state (self->bin, GST_STATE_NULL);
  gst_pad_set_active (self->out, FALSE);
}

// ---- construction ----

static GstBusSyncReply
on_message (GstBus *bus, GstMessage *message, gpointer data)
{
  FrameChain *self = data;
  g_autoptr (GError) error = NULL;

  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR) {
    gst_message_parse_error (message, &error, NULL);
    self->callbacks->failed (self->owner, error->message);
  }
  gst_message_unref (message);
  return GST_BUS_DROP;
}

// Without a queue of messages, a bus has no file descriptors.
static void
watch_bus (FrameChain *self)
{
  g_autoptr (GstBus) bus =
      gst_object_ref_sink (g_object_new (GST_TYPE_BUS, "enable-async", FALSE, NULL));

  gst_bus_set_sync_handler (bus, on_message, self, NULL);
  gst_element_set_bus (self->bin, bus);
}

static GstElement *
add (FrameChain *self, const gchar *name, GError **error)
{
  GstElement *element = element_make (name, error);

  if (element)
    gst_bin_add (GST_BIN (self->bin), element);
  return element;
}

static GstPad *
make_pad (FrameChain *self, GstPadDirection direction, GstCaps *caps)
{
  GstPadTemplate *template =
      gst_object_ref_sink (gst_pad_template_new ("frames", direction, GST_PAD_ALWAYS, caps));
  GstPad *pad = gst_object_ref_sink (gst_pad_new_from_template (template, NULL));

  gst_pad_set_element_private (pad, self);
  gst_object_unref (template);
  return pad;
}

static void
link_ends (FrameChain *self, GstElement *first, GstElement *last)
{
  g_autoptr (GstPad) sink = gst_element_get_static_pad (first, "sink");
  g_autoptr (GstPad) src = gst_element_get_static_pad (last, "src");

  gst_pad_link (self->in, sink);
  gst_pad_link (src, self->out);
}

static void
make_ends (FrameChain *self, const FrameKind *kind)
{
  g_autoptr (GstCaps) wanted = gst_caps_from_string (kind->caps);

  self->in = make_pad (self, GST_PAD_SRC, self->packets);
  gst_pad_set_event_function (self->in, on_in_event);
  gst_pad_set_query_function (self->in, on_in_query);
  self->out = make_pad (self, GST_PAD_SINK, wanted);
  gst_pad_set_event_function (self->out, on_out_event);
  gst_pad_set_chain_function (self->out, on_out_frame);
}

static void
set_layers (FrameChain *self, const WeirLayerSet *layers)
{
  g_object_set (self->filter, "max-spatial", (gint) layers->spatial, "max-quality",
      (gint) layers->quality, "max-temporal", (gint) layers->temporal, NULL);
  gst_util_set_object_arg (G_OBJECT (self->filter), "output-mode", "avc");
}

static gboolean
make (FrameChain *self, const FrameKind *kind, const WeirLayerSet *layers, GError **error)
{
  GstElement *depay = add (self, kind->depay, error);
  GstElement *parse = depay ? add (self, kind->parse, error) : NULL;
  GstPad *src;

  if (parse && layers)
    self->filter = add (self, "svclayerfilter", error);
  if (!parse || (layers && !self->filter))
    return FALSE;
  // Players that do not begin anew where the picture changes its size, such as FFmpeg, find the new
  // parameter sets before each keyframe.
  if (frame_kind_has_sets (kind))
    g_object_set (parse, "config-interval", -1, NULL);
  gst_element_link (depay, parse);
  src = gst_element_get_static_pad (depay, "src");
  gst_pad_add_probe (
      src, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST, on_depayloaded, self, NULL);
  gst_object_unref (src);
  if (self->filter) {
    set_layers (self, layers);
    gst_element_link (self->filter, depay);
  }
  make_ends (self, kind);
  link_ends (self, self->filter ? self->filter : depay, parse);
  return TRUE;
}

FrameChain *
frame_chain_new (GstCaps *caps, const WeirLayerSet *layers, const FrameChainCallbacks *callbacks,
    gpointer owner, GError **error)
{
  FrameChain *self = g_new0 (FrameChain, 1);

  self->callbacks = callbacks;
  self->owner = owner;
  self->packets = gst_caps_ref (caps);
  self->bin = gst_object_ref_sink (gst_bin_new (NULL));
  watch_bus (self);
  if (!make (self, frame_kind_find (caps), layers, error))
    g_clear_pointer (&self, frame_chain_free);
  return self;
}

GstElement *
frame_chain_get_filter (FrameChain *self)
{
  return self->filter;
}

void
frame_chain_free (FrameChain *self)
{
  gst_element_set_state (self->bin, GST_STATE_NULL);
  gst_object_unref (self->bin);
  gst_clear_object (&self->in);
  gst_clear_object (&self->out);
  gst_clear_caps (&self->caps);
  gst_caps_unref (self->packets);
  g_free (self);
}
