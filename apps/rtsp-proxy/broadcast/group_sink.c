// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broadcast/group_sink.h"

#include "base/clock.h"
#include "base/key_event.h"
#include "broadcast/multicast_sink.h"

// A client that comes just before a keyframe asks for what is missing between its first answer and
// the group; so packets stay for a while when a newer keyframe is there.
#define WINDOW_TIME (2 * GST_SECOND)

struct _GroupSink {
  gatomicrefcount refs;
  gchar *label, *group;
  gint port;
  Relay *relay;
  guint track;
  GstElement *sink;
  GstPad *src;
};

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

static gboolean
start (GroupSink *self, const BroadcastConfig *config, GstCaps *caps, GError **error)
{
  MulticastAddress to = { self->label, "", config->port, config->ttl, config->iface };

  g_strlcpy (to.group, config->groups, sizeof to.group);
  self->sink = multicast_sink_new (&to, self->track, error);
  if (!self->sink)
    return FALSE;
  gst_util_set_object_arg (G_OBJECT (self->sink), "join", "keyframe");
  g_object_set (self->sink, "window-time", (guint64) WINDOW_TIME, NULL);
  self->src = gst_object_ref_sink (gst_pad_new ("src", GST_PAD_SRC));
  gst_pad_set_element_private (self->src, self);
  gst_pad_set_event_function (self->src, on_event);
  return multicast_sink_start (self->sink, self->src, caps, &to, self->track, error);
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
  if (!start (self, config, caps, error))
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
