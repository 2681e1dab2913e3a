// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the readers of messages about stored titles: those that a worker process sends for a track
// and for control, and those that it gets. The input consists of messages, each after two bytes of
// length; the upper two bits of the length say which reader gets the message.

#include "app.h"
#include "isolate/title_wire.h"
#include "relay/relay.h"
#include "rtp/rtp.h"
#include "weir.h"

static GstSegment segment; // the last one

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  init_gst ();
  only_critical ();
  gst_segment_init (&segment, GST_FORMAT_TIME);
  return 0;
}

static gboolean
is_time (GstClockTime time)
{
  return time == GST_CLOCK_TIME_NONE || time <= G_MAXINT64;
}

// ---- tracks ----

static void
on_state (gpointer owner, GstClockTime lead, gint64 duration, gboolean seekable)
{
  require (is_time (lead) && duration >= -1);
}

static void
on_caps (gpointer owner, GstCaps *caps)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);
  gint rate;

  require (gst_caps_is_fixed (caps) && gst_structure_has_name (s, "application/x-rtp"));
  require (gst_structure_get_int (s, "clock-rate", &rate) && rate > 0);
  gst_event_unref (gst_event_new_caps (caps));
}

static void
on_segment (gpointer owner, const GstSegment *given)
{
  require (given->format == GST_FORMAT_TIME && given->rate > 0 && given->applied_rate > 0);
  require (given->start <= given->stop);
  segment = *given;
  gst_event_unref (gst_event_new_segment (given));
  gst_segment_to_stream_time (given, GST_FORMAT_TIME, given->start);
  gst_segment_to_stream_time (given, GST_FORMAT_TIME, given->stop);
}

static void
on_packets (gpointer owner, GstBufferList *packets)
{
  guint n = gst_buffer_list_length (packets);

  require (n > 0);
  for (guint i = 0; i < n; i++) {
    GstBuffer *packet = gst_buffer_list_get (packets, i);
    guint n_parts = 1;
    const guint16 *lengths = weir_buffer_get_packets (packet, &n_parts);
    guint16 whole;
    GstMapInfo map;
    WeirRtp rtp;
    gsize at = 0;

    require (is_time (GST_BUFFER_PTS (packet)) && is_time (GST_BUFFER_DTS (packet)));
    require (is_time (GST_BUFFER_DURATION (packet)));
    require (gst_buffer_map (packet, &map, GST_MAP_READ));
    whole = (guint16) map.size;
    lengths = lengths ? lengths : &whole;
    for (guint k = 0; k < n_parts; at += lengths[k++])
      require (weir_rtp_parse (map.data + at, lengths[k], &rtp) == 0);
    require (at == map.size && n_parts <= TITLE_WIRE_TOGETHER);
    gst_buffer_unmap (packet, &map);
    gst_segment_to_running_time (&segment, GST_FORMAT_TIME, GST_BUFFER_PTS (packet));
  }
  gst_buffer_list_unref (packets);
}

static void
on_gap (gpointer owner, GstClockTime at, GstClockTime duration)
{
  gst_event_unref (gst_event_new_gap (at, duration));
}

static void
on_eos (gpointer owner)
{
}

static void
on_flushed (gpointer owner, guint32 serial)
{
}

// ---- control ----

static void
on_track (gpointer owner, guint track, guint payload_type, guint mtu)
{
  require (track < RELAY_MAX_TRACKS && payload_type <= 127 && mtu >= 28);
}

static void
on_left_out (gpointer owner, const gchar *text)
{
  require (g_utf8_validate (text, -1, NULL) && !strpbrk (text, "\r\n"));
}

static void
on_complete (gpointer owner, gboolean raw)
{
}

static void
on_seeked (gpointer owner, guint32 serial, gboolean ok)
{
}

static void
on_failed (gpointer owner, const GError *error, const gchar *debug)
{
  GstMessage *message;

  require (g_utf8_validate (error->message, -1, NULL) && !strpbrk (error->message, "\r\n"));
  require (g_utf8_validate (debug, -1, NULL) && !strchr (debug, '\r'));
  message = gst_message_new_error (NULL, (GError *) error, debug);
  gst_message_unref (message);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  static const TitleTrackHandler tracks = { on_state, on_caps, on_segment, on_packets, on_gap,
    on_eos, on_flushed };
  static const TitleControlHandler control = { on_track, on_left_out, on_complete, on_flushed,
    on_seeked, on_failed };

  while (size >= 2) {
    size_t len = (size_t) (data[0] & 0x3f) << 8 | data[1];
    uint8_t reader = data[0] >> 6;
    TitleCommand command;

    data += 2;
    size -= 2;
    len = len < size ? len : size;
    if (reader == 0)
      title_wire_read_control (data, len, &control, NULL);
    else if (reader == 1)
      require (!title_wire_read_command (data, len, &command) || command.track < RELAY_MAX_TRACKS);
    else
      title_wire_read_track (data, len, &tracks, 1 + (guint) len % TITLE_WIRE_TOGETHER, NULL);
    data += len;
    size -= len;
  }
  return 0;
}
