// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/ts/ts_way.h"

#include <gio/gio.h>

#include "base/clock.h"
#include "base/key_event.h"
#include "base/log.h"
#include "outlets/ts/ts_cutter.h"

static void
way_clear (gpointer way)
{
  TsWay *self = way;

  if (self->src)
    gst_pad_set_active (self->src, FALSE);
  if (self->bin)
    gst_element_set_state (self->bin, GST_STATE_NULL);
  gst_clear_object (&self->src);
  gst_clear_object (&self->bin);
  gst_clear_object (&self->sink);
}

void
ts_way_unref (gpointer way)
{
  g_atomic_rc_box_release_full (way, way_clear);
}

// The sink asks for a keyframe while its window has none.
static gboolean
on_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  Relay *relay = gst_pad_get_element_private (pad);
  gboolean key = key_event_is (event);

  gst_event_unref (event);
  for (guint i = 0; key && i < relay_n_tracks (relay); i++)
    relay_ask_key (relay, i, clock_now ());
  return key;
}

static GstBusSyncReply
on_message (GstBus *bus, GstMessage *message, gpointer data)
{
  static LogLimit limit = { .burst = 3, .interval_ms = 10000 };
  g_autoptr (GError) error = NULL;
  g_autofree gchar *details = NULL;

  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_WARNING)
    gst_message_parse_warning (message, &error, &details);
  else if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR)
    gst_message_parse_error (message, &error, &details);
  if (error)
    log_event_limited (&limit, "%s: %s", (const gchar *) data, details ? details : error->message);
  gst_message_unref (message);
  return GST_BUS_DROP;
}

TsWay *
ts_way_new (void)
{
  return g_atomic_rc_box_new0 (TsWay);
}

gboolean
ts_way_init (TsWay *self, Relay *relay, const gchar *label, const gchar *launch, GError **error)
{
  GstBus *bus = gst_bus_new ();
  g_autoptr (GstPad) pad = NULL;

  self->bin = gst_parse_bin_from_description (launch, TRUE, error);
  if (!self->bin) {
    gst_object_unref (bus);
    return FALSE;
  }
  gst_object_ref_sink (self->bin);
  gst_bus_set_sync_handler (bus, on_message, g_strdup (label), g_free);
  gst_element_set_bus (self->bin, bus);
  gst_object_unref (bus);
  self->sink = gst_bin_get_by_name (GST_BIN (self->bin), "sink");
  self->src = gst_object_ref_sink (gst_pad_new ("src", GST_PAD_SRC));
  gst_pad_set_element_private (self->src, relay);
  gst_pad_set_event_function (self->src, on_event);
  pad = gst_element_get_static_pad (self->bin, "sink");
  gst_pad_link (self->src, pad);
  return TRUE;
}

gboolean
ts_way_start (TsWay *self, GError **error)
{
  GstClock *clock = gst_system_clock_obtain ();

  gst_element_set_clock (self->bin, clock);
  gst_object_unref (clock);
  if (gst_element_set_state (self->bin, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "its sockets cannot be opened");
    return FALSE;
  }
  gst_pad_set_active (self->src, TRUE);
  return TRUE;
}

void
ts_way_push (TsWay *self, GstBufferList *list, const gchar *label)
{
  GstSegment segment;
  g_autoptr (GstCaps) caps = NULL;

  if (!self->told) {
    caps = gst_caps_new_simple ("video/mpegts", "systemstream", G_TYPE_BOOLEAN, TRUE, "packetsize",
        G_TYPE_INT, TS_PACKET, NULL);
    gst_segment_init (&segment, GST_FORMAT_TIME);
    gst_pad_push_event (self->src, gst_event_new_stream_start (label));
    gst_pad_push_event (self->src, gst_event_new_caps (caps));
    gst_pad_push_event (self->src, gst_event_new_segment (&segment));
    self->told = TRUE;
  }
  gst_pad_push_list (self->src, list);
}
