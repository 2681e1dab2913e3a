// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broadcast/group_sink.h"

#include "base/clock.h"
#include "base/element.h"
#include "base/key_event.h"
#include "base/log.h"

#include <gio/gio.h>

struct _GroupSink {
  gatomicrefcount refs;
  gchar *label, *group;
  gint port;
  Relay *relay;
  guint track;
  GstElement *sink;
  GstPad *src;
};

static LogLimit failures = { .burst = 3, .interval_ms = 10000 };

// The sink asks for a keyframe while its window has none.
static gboolean
on_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GroupSink *self = gst_pad_get_element_private (pad);
  gboolean key = key_event_is (event);

  gst_event_unref (event);
  if (key)
    relay_ask_key (self->relay, self->track, clock_now ());
  return key;
}

static GstBusSyncReply
on_message (GstBus *bus, GstMessage *message, gpointer data)
{
  GroupSink *self = data;
  GError *error = NULL;
  gchar *details = NULL;

  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_WARNING)
    gst_message_parse_warning (message, &error, &details);
  else if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR)
    gst_message_parse_error (message, &error, &details);
  if (error)
    log_event_limited (&failures, "broadcast %s: cannot send to %s port %d: %s", self->label,
        self->group, self->port, details ? details : error->message);
  g_clear_error (&error);
  g_free (details);
  gst_message_unref (message);
  return GST_BUS_DROP;
}

// Returns NULL and sets `error` on failure. (transfer full)
static GstElement *
make_sink (GroupSink *self, const BroadcastConfig *config, GError **error)
{
  GstElement *sink = element_make ("fanoutsink", error);
  GstBus *bus;

  if (!sink)
    return NULL;
  bus = gst_bus_new ();
  g_object_set (sink, "sync", FALSE, "async", FALSE, "auto-multicast", FALSE, "ttl-mc",
      (gint) config->ttl, "multicast-iface", config->iface, NULL);
  gst_util_set_object_arg (G_OBJECT (sink), "join", "keyframe");
  gst_bus_set_sync_handler (bus, on_message, self, NULL);
  gst_element_set_bus (sink, bus);
  gst_object_unref (bus);
  return gst_object_ref_sink (sink);
}

static gboolean
start (GroupSink *self, GstCaps *caps, GError **error)
{
  GstPad *pad = gst_element_get_static_pad (self->sink, "sink");
  GstSegment segment;

  self->src = gst_object_ref_sink (gst_pad_new ("src", GST_PAD_SRC));
  gst_pad_set_element_private (self->src, self);
  gst_pad_set_event_function (self->src, on_event);
  gst_pad_link (self->src, pad);
  gst_object_unref (pad);
  if (gst_element_set_state (self->sink, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "cannot open a socket for %s", self->group);
    return FALSE;
  }
  gst_pad_set_active (self->src, TRUE);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_pad_push_event (self->src, gst_event_new_stream_start (self->label));
  gst_pad_push_event (self->src, gst_event_new_caps (caps));
  gst_pad_push_event (self->src, gst_event_new_segment (&segment));
  g_signal_emit_by_name (self->sink, "add", self->group, self->port);
  return TRUE;
}

GroupSink *
group_sink_new (const gchar *label, const BroadcastConfig *config, Relay *relay, guint track,
    GstCaps *caps, GError **error)
{
  GroupSink *self = g_new0 (GroupSink, 1);

  g_atomic_ref_count_init (&self->refs);
  self->label = g_strdup (label);
  self->group = g_strdup (config->groups);
  self->port = config->port + 2 * (gint) track;
  self->relay = relay_ref (relay);
  self->track = track;
  self->sink = make_sink (self, config, error);
  if (!self->sink || !start (self, caps, error))
    g_clear_pointer (&self, group_sink_unref);
  return self;
}

GroupSink *
group_sink_ref (GroupSink *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
group_sink_unref (GroupSink *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  if (self->src)
    gst_pad_set_active (self->src, FALSE);
  if (self->sink)
    gst_element_set_state (self->sink, GST_STATE_NULL);
  gst_clear_object (&self->src);
  gst_clear_object (&self->sink);
  relay_unref (self->relay);
  g_free (self->label);
  g_free (self->group);
  g_free (self);
}

void
group_sink_push (GroupSink *self, GstBuffer *packet)
{
  gst_pad_push (self->src, packet);
}

GstBufferList *
group_sink_get_packets (GroupSink *self, gint from, guint n)
{
  GstBufferList *list = NULL;

  g_signal_emit_by_name (self->sink, "get-packets", from, n, &list);
  return list;
}

void
group_sink_add_sent (GroupSink *self, guint64 *packets, guint64 *bytes)
{
  GstStructure *stats = NULL;
  guint64 n_packets = 0, n_bytes = 0;

  g_signal_emit_by_name (self->sink, "get-stats", self->group, self->port, &stats);
  if (stats) {
    gst_structure_get (stats, "packets-sent", G_TYPE_UINT64, &n_packets, "bytes-sent",
        G_TYPE_UINT64, &n_bytes, NULL);
    gst_structure_free (stats);
  }
  *packets += n_packets;
  *bytes += n_bytes;
}
