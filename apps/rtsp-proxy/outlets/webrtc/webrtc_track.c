// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/webrtc_track.h"

#include <string.h>

#include "base/clock.h"
#include "base/key_event.h"
#include "base/log.h"
#include "readers/totals.h"
#include "relay/relay_caps.h"
#include "weir.h"

#define ROOM 4096                           // bytes, first, of the packets of one call
#define RECENT (300 * (gint64) GST_MSECOND) // a keyframe that left so lately may not have come yet
#define STEP (10 * (gint64) GST_MSECOND)    // packets that arrived so far apart are sent apart
#define SILENCE (5 * (gint64) GST_SECOND)   // a track's time goes on without packets for so long

static const gchar *const reasons[WEIR_FIT_N_RESULTS] = {
  [WEIR_FIT_B] = "b-slices",
  [WEIR_FIT_NEEDLESS] = "needless",
  [WEIR_FIT_BROKEN] = "broken",
  [WEIR_FIT_LATE] = "late",
  [WEIR_FIT_TOO_LONG] = "too-long",
  [WEIR_FIT_NO_MEMORY] = "no-memory",
};

static guint64 left_out[WEIR_FIT_N_RESULTS]; // atomic

struct _WebrtcStreamTrack {
  WebrtcTrack shown;
  gchar *encoding, *fmtp, *label;
  Relay *relay;
  guint number; // in the relay
  GstElement *bin;
  GstPad *src; // pushes into it

  // The relay's thread.
  WeirFit *fit;
  WeirLayers layers; // of the packets that are written
  guint8 *bytes;     // packets, one behind the other
  gsize room, len;
  GArray *lengths; // guint16 of each
  gint64 since;    // when the first of them arrived
  gint64 last_time, last_arrived;
  gboolean has_key; // among them
  gboolean told_b;

  GMutex lock; // protects the fields below
  gboolean has_time;
  gint64 time, arrived; // of the last packet
  gint64 key_at;        // when the last keyframe left, ns; 0: never
};

// ---- packets ----

static guint8 *
reserve (gpointer data, gsize size)
{
  WebrtcStreamTrack *self = data;

  if (size > G_MAXUINT16)
    return NULL;
  if (self->len + size > self->room) {
    self->room = MAX (self->room * 2, MAX ((gsize) ROOM, self->len + size));
    self->bytes = g_realloc (self->bytes, self->room);
  }
  return self->bytes + self->len;
}

static void
commit (gpointer data, gsize size)
{
  WebrtcStreamTrack *self = data;
  const guint8 *payload = self->bytes + self->len + WEIR_RTP_HEADER;
  const guint16 length = (guint16) size;
  WeirLayer layer = { 0 };

  if (self->shown.is_video
      && weir_layers_read (&self->layers, payload, size - WEIR_RTP_HEADER, &layer))
    self->has_key |= layer.keyframe;
  g_array_append_val (self->lengths, length);
  self->len += size;
}

static const WeirFitOut out = { reserve, commit };

static void
count (WebrtcStreamTrack *self, WeirFitResult result)
{
  if (result == WEIR_FIT_SENT)
    return;
  __atomic_add_fetch (&left_out[result], 1, __ATOMIC_RELAXED);
  if (result == WEIR_FIT_B && !self->told_b) {
    self->told_b = TRUE;
    log_event ("%s: readers over WebRTC get no pictures of B slices, as browsers reorder none",
        self->label);
  }
}

static void
note_time (WebrtcStreamTrack *self)
{
  g_mutex_lock (&self->lock);
  self->has_time = TRUE;
  self->time = self->last_time;
  self->arrived = self->last_arrived;
  if (self->has_key)
    self->key_at = self->last_arrived;
  g_mutex_unlock (&self->lock);
  self->has_key = FALSE;
}

// Tells the sink when a buffer arrived, if that was earlier, so that its readers catch up.
static void
set_arrival (GstBuffer *buffer, gint64 arrived)
{
  g_autoptr (GstCaps) caps = NULL;

  if (clock_now () - arrived <= STEP)
    return;
  caps = gst_caps_new_empty_simple ("timestamp/x-weir-arrival");
  gst_buffer_add_reference_timestamp_meta (
      buffer, caps, (GstClockTime) arrived, GST_CLOCK_TIME_NONE);
}

// Sends what has been written. The results are ignored: the sink has nobody to tell them.
static void
send (WebrtcStreamTrack *self)
{
  GstBuffer *buffer;

  if (self->len == 0)
    return;
  note_time (self);
  buffer =
      gst_buffer_new_wrapped_full (0, self->bytes, self->room, 0, self->len, self->bytes, g_free);
  if (self->lengths->len > 1)
    weir_buffer_set_packets (buffer, (const guint16 *) self->lengths->data, self->lengths->len);
  set_arrival (buffer, self->since);
  self->bytes = NULL;
  self->room = self->len = 0;
  g_array_set_size (self->lengths, 0);
  gst_pad_push (self->src, buffer);
}

void
webrtc_stream_track_push (WebrtcStreamTrack *self, const RelayPacket *packet)
{
  GstMapInfo map;

  if (packet->now - self->since > STEP)
    send (self);
  if (self->len == 0)
    self->since = packet->now;
  self->last_time = packet->time;
  self->last_arrived = packet->now;
  if (gst_buffer_map (packet->buffer, &map, GST_MAP_READ)) {
    count (self, weir_fit_take (self->fit, map.data, map.size));
    gst_buffer_unmap (packet->buffer, &map);
  }
  gst_buffer_unref (packet->buffer);
  if (!packet->more || self->len >= G_MAXUINT16)
    send (self);
}

// ---- what others ask ----

gboolean
webrtc_stream_track_get_time (WebrtcStreamTrack *self, gint64 now, gint64 *time)
{
  gboolean has;

  g_mutex_lock (&self->lock);
  has = self->has_time;
  *time = self->time + CLAMP (now - self->arrived, 0, SILENCE);
  g_mutex_unlock (&self->lock);
  return has;
}

gint64
webrtc_stream_track_ask_key (WebrtcStreamTrack *self, gint64 now)
{
  gint64 left;

  g_mutex_lock (&self->lock);
  left = self->key_at > 0 && now - self->key_at <= RECENT ? self->key_at : 0;
  g_mutex_unlock (&self->lock);
  if (left == 0)
    relay_ask_key (self->relay, self->number, now);
  return left;
}

guint64
webrtc_track_get_left_out (WeirFitResult reason)
{
  return __atomic_load_n (&left_out[reason], __ATOMIC_RELAXED);
}

const gchar *
webrtc_track_get_reason (WeirFitResult reason)
{
  return reasons[reason];
}

const WebrtcTrack *
webrtc_stream_track_get (const WebrtcStreamTrack *self)
{
  return &self->shown;
}

// ---- the sink ----

// The sink asks for a keyframe while its window has none.
static gboolean
on_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  WebrtcStreamTrack *self = gst_pad_get_element_private (pad);
  const gboolean key = key_event_is (event);

  gst_event_unref (event);
  if (key)
    relay_ask_key (self->relay, self->number, clock_now ());
  return key;
}

static GstBusSyncReply
on_message (GstBus *bus, GstMessage *message, gpointer data)
{
  static LogLimit limit = { .burst = 3, .interval_ms = 10000 };
  GError *error = NULL;
  gchar *details = NULL;

  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_WARNING)
    gst_message_parse_warning (message, &error, &details);
  else if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR)
    gst_message_parse_error (message, &error, &details);
  if (error)
    log_event_limited (&limit, "%s: %s", (const gchar *) data, details ? details : error->message);
  g_clear_error (&error);
  g_free (details);
  gst_message_unref (message);
  return GST_BUS_DROP;
}

static void
link_sink (WebrtcStreamTrack *self)
{
  GstBus *bus = gst_bus_new ();
  GstPad *pad = gst_element_get_static_pad (self->bin, "sink");

  gst_bus_set_sync_handler (bus, on_message, g_strdup (self->label), g_free);
  gst_element_set_bus (self->bin, bus);
  gst_object_unref (bus);
  self->shown.sink = gst_bin_get_by_name (GST_BIN (self->bin), "sink");
  self->src = gst_object_ref_sink (gst_pad_new ("src", GST_PAD_SRC));
  gst_pad_set_element_private (self->src, self);
  gst_pad_set_event_function (self->src, on_event);
  gst_pad_link (self->src, pad);
  gst_object_unref (pad);
}

static void
configure_sink (WebrtcStreamTrack *self, Presentation *presentation, GSocket *v4, GSocket *v6)
{
  MountConfig *config = presentation_dup_config (presentation);
  GstElement *sink = self->shown.sink;

  gst_util_set_object_arg (G_OBJECT (sink), "join", config->join);
  gst_util_set_object_arg (G_OBJECT (sink), "catch-up", config->catch_up);
  gst_util_set_object_arg (G_OBJECT (sink), "drop-policy", config->drop_policy);
  g_object_set (sink, "priority", config->priority, "socket", v4, "socket-v6", v6, "close-socket",
      !v4 && !v6, NULL);
  totals_watch_sink (presentation_get_mount_path (presentation), sink);
  mount_config_unref (config);
}

static gboolean
start_sink (WebrtcStreamTrack *self, GstCaps *caps, GError **error)
{
  GstClock *clock = gst_system_clock_obtain ();
  GstSegment segment;

  gst_element_set_clock (self->bin, clock);
  gst_object_unref (clock);
  if (gst_element_set_state (self->bin, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "its sockets cannot be opened");
    return FALSE;
  }
  gst_pad_set_active (self->src, TRUE);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_pad_push_event (self->src, gst_event_new_stream_start (self->label));
  gst_pad_push_event (self->src, gst_event_new_caps (caps));
  gst_pad_push_event (self->src, gst_event_new_segment (&segment));
  return TRUE;
}

// ---- construction ----

// Gives the parameter sets of an SDP to what makes packets fit.
static void
add_sets (WebrtcStreamTrack *self, const GstStructure *s)
{
  const gchar *text = gst_structure_get_string (s, "sprop-parameter-sets");
  gchar **sets = g_strsplit (text ? text : "", ",", 16);

  for (guint i = 0; sets[i]; i++) {
    gsize len;
    guchar *nal = g_base64_decode (sets[i], &len);

    weir_fit_add_set (self->fit, nal, len);
    g_free (nal);
  }
  g_strfreev (sets);
}

static gchar *
dup_fmtp (const GstStructure *s)
{
  static const gchar *const fields[] = { "profile-level-id", "profile-id", "profile" };

  for (guint i = 0; i < G_N_ELEMENTS (fields); i++) {
    const gchar *value = gst_structure_get_string (s, fields[i]);

    if (value)
      return g_strdup_printf ("%s=%s", fields[i], value);
  }
  return NULL;
}

static void
describe (WebrtcStreamTrack *self, const GstCaps *caps)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);

  self->shown.is_video = !g_strcmp0 (gst_structure_get_string (s, "media"), "video");
  self->shown.codec = webrtc_codec_from_name (gst_structure_get_string (s, "encoding-name"));
  self->encoding = g_ascii_strup (gst_structure_get_string (s, "encoding-name"), -1);
  self->shown.encoding = self->encoding;
  self->shown.fmtp = self->fmtp = dup_fmtp (s);
}

WebrtcStreamTrack *
webrtc_stream_track_new (Presentation *presentation, Relay *relay, guint number, GstCaps *caps,
    GSocket *v4, GSocket *v6, GError **error)
{
  WebrtcStreamTrack *self = g_new0 (WebrtcStreamTrack, 1);

  g_mutex_init (&self->lock);
  self->label = g_strdup_printf ("mount %s", presentation_get_label (presentation));
  self->relay = relay_ref (relay);
  self->number = number;
  self->lengths = g_array_new (FALSE, FALSE, sizeof (guint16));
  describe (self, caps);
  self->layers.codec = relay_caps_get_codec (caps);
  self->fit = weir_fit_new (self->layers.codec, &out, self);
  add_sets (self, gst_caps_get_structure (caps, 0));
  self->bin = gst_parse_bin_from_description (
      "fanoutsink name=sink sync=false async=false auto-multicast=false", TRUE, error);
  if (!self->fit || !self->bin) {
    if (!self->fit)
      g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_FAILED, "there is no memory");
    webrtc_stream_track_free (self);
    return NULL;
  }
  gst_object_ref_sink (self->bin);
  link_sink (self);
  configure_sink (self, presentation, v4, v6);
  if (!start_sink (self, caps, error)) {
    webrtc_stream_track_free (self);
    return NULL;
  }
  return self;
}

void
webrtc_stream_track_free (WebrtcStreamTrack *self)
{
  if (self->src)
    gst_pad_set_active (self->src, FALSE);
  if (self->bin)
    gst_element_set_state (self->bin, GST_STATE_NULL);
  gst_clear_object (&self->src);
  gst_clear_object (&self->shown.sink);
  gst_clear_object (&self->bin);
  weir_fit_free (self->fit);
  g_free (self->bytes);
  g_array_unref (self->lengths);
  relay_unref (self->relay);
  g_mutex_clear (&self->lock);
  g_free (self->encoding);
  g_free (self->fmtp);
  g_free (self->label);
  g_free (self);
}
