// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broadcast/multicast_sink.h"

#include <gio/gio.h>

#include "base/element.h"
#include "base/log.h"
#include "broadcast/source_address.h"

static LogLimit failures = { .burst = 3, .interval_ms = 10000 };

static gint
port_of (const MulticastAddress *to, guint track)
{
  return to->port + 2 * (gint) track;
}

static GstBusSyncReply
on_message (GstBus *bus, GstMessage *message, gpointer data)
{
  const gchar *to = data;
  g_autoptr (GError) error = NULL;
  g_autofree gchar *details = NULL;

  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_WARNING)
    gst_message_parse_warning (message, &error, &details);
  else if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR)
    gst_message_parse_error (message, &error, &details);
  if (error)
    log_event_limited (&failures, "broadcast %s: %s", to, details ? details : error->message);
  gst_message_unref (message);
  return GST_BUS_DROP;
}

GstElement *
multicast_sink_new (const MulticastAddress *to, guint track, GError **error)
{
  GstElement *sink = element_make ("fanoutsink", error);
  g_autofree gchar *source = NULL;
  g_autoptr (GstBus) bus = NULL;

  if (!sink)
    return NULL;
  source = source_address_dup (to->group, to->iface);
  g_object_set (sink, "sync", FALSE, "async", FALSE, "auto-multicast", FALSE, "ttl-mc",
      (gint) to->ttl, "multicast-iface", to->iface, "bind-address", source, NULL);
  bus = gst_bus_new ();
  gst_bus_set_sync_handler (bus, on_message,
      g_strdup_printf ("%s: cannot send to %s port %d", to->label, to->group, port_of (to, track)),
      g_free);
  gst_element_set_bus (sink, bus);
  return gst_object_ref_sink (sink);
}

gboolean
multicast_sink_start (GstElement *sink, GstPad *src, GstCaps *caps, const MulticastAddress *to,
    guint track, GError **error)
{
  GstPad *pad = gst_element_get_static_pad (sink, "sink");
  GstSegment segment;

  gst_pad_link (src, pad);
  gst_object_unref (pad);
  if (gst_element_set_state (sink, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "cannot open a socket for %s", to->group);
    return FALSE;
  }
  gst_pad_set_active (src, TRUE);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_pad_push_event (src, gst_event_new_stream_start (to->label));
  gst_pad_push_event (src, gst_event_new_caps (caps));
  gst_pad_push_event (src, gst_event_new_segment (&segment));
  g_signal_emit_by_name (sink, "add", to->group, port_of (to, track));
  return TRUE;
}
