// SPDX-License-Identifier: LGPL-2.1-or-later

// Holds the tracks' packets until all tracks can be passed to the relay, then sends the packets.

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "relay/relay_caps.h"
#include "rtp/rtp.h"
#include "sources/tracks_private.h"

// Longest wait, in ms, for an announced stream that sends no packet or no keyframe. The wait is
// also limited to half of the upstream's connect time-out.
#define HOLD_LIMIT_MS 3000

static LogLimit left_out = { .burst = 8, .interval_ms = 10000 };

void
tracks_packet_free (gpointer data)
{
  Packet *packet = data;

  gst_buffer_unref (packet->packet);
  g_free (packet);
}

// ---- the description; with the lock held ----

void
tracks_close_description (Tracks *self)
{
  self->open = FALSE;
  self->stale = TRUE;
  for (guint i = 0; i < self->tracks->len; i++)
    ((Track *) g_ptr_array_index (self->tracks, i))->index = -1;
}

void
tracks_set_caps (Track *track, GstCaps *caps)
{
  GstStructure *s;

  if (!caps || caps == track->seen)
    return;
  gst_caps_replace (&track->seen, caps);
  caps = gst_caps_copy (caps);
  // GStreamer's own fields; in RTP caps profile-level-id has these values.
  s = gst_caps_get_structure (caps, 0);
  gst_structure_remove_fields (s, "profile", "level", "tier", NULL);
  if (track->kind)
    gst_structure_set (s, "payload", G_TYPE_INT, track->pt, NULL);
  if (track->language[0])
    gst_structure_set (s, RELAY_CAPS_LANGUAGE, G_TYPE_STRING, track->language, NULL);
  if (track->index >= 0 && !relay_caps_same (track->caps, caps))
    tracks_close_description (track->owner);
  gst_caps_take (&track->caps, caps);
}

gboolean
tracks_all_known (Tracks *self)
{
  for (guint i = 0; i < self->tracks->len; i++) {
    const Track *track = g_ptr_array_index (self->tracks, i);

    if (!track->caps && !track->left)
      return FALSE;
  }
  return self->tracks->len > 0;
}

static gint
is_audio (const Track *track)
{
  return track->kind && !track->kind->video;
}

// Returns the demuxer's number of the stream, as text of one length: what is before it may differ.
static const gchar *
get_number (const Track *track)
{
  const gchar *slash = track->stream ? strrchr (track->stream, '/') : NULL;

  return slash ? slash + 1 : "";
}

// Sorts video tracks first, and those of a kind as their demuxer numbers them, whichever was found
// first.
static gint
compare_tracks (gconstpointer a, gconstpointer b)
{
  const Track *x = *(Track *const *) a, *y = *(Track *const *) b;
  gint by_kind = is_audio (x) - is_audio (y), by_stream = strcmp (get_number (x), get_number (y));

  return by_kind ? by_kind : by_stream ? by_stream : x->made_pt - y->made_pt;
}

// Sets the caps of a track that has sent no keyframe yet. One that has sent nothing at all is left
// out: it may be of any kind, whatever the tables of a transport stream say.
static void
presume_caps (Track *track)
{
  gchar *text;

  if (track->caps || track->left || !track->kind)
    return;
  if (!g_atomic_int_get (&track->heard))
    log_event_limited (&left_out, "%s: a track is left out until something comes on it: %.*s",
        track->owner->context->config->uri, (int) strcspn (track->kind->caps, ","),
        track->kind->caps);
  if (!g_atomic_int_get (&track->heard) || !track->kind->known)
    return;
  text = g_strdup_printf (
      "application/x-rtp, media=(string)video, clock-rate=(int)90000, %s", track->kind->known);
  track->caps = gst_caps_from_string (text);
  gst_caps_set_simple (track->caps, "payload", G_TYPE_INT, track->made_pt, NULL);
  g_free (text);
}

// Gives the same tracks the same payload types, even if other tracks existed when the payloader was
// made.
static void
set_payload_type (Track *track, guint *n_video, guint *n_audio)
{
  if (!track->kind || track->made_pt == track->kind->pt)
    return;
  track->pt = track->kind->video ? 96 + 2 * (gint) (*n_video)++ : 97 + 2 * (gint) (*n_audio)++;
  if (track->caps) {
    track->caps = gst_caps_make_writable (track->caps);
    gst_caps_set_simple (track->caps, "payload", G_TYPE_INT, track->pt, NULL);
  }
}

// Numbers the tracks that are known. Returns their caps. (transfer full)
static GPtrArray *
number_tracks (Tracks *self)
{
  GPtrArray *caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);
  guint n_video = 0, n_audio = 0;

  g_ptr_array_sort (self->tracks, compare_tracks);
  for (guint i = 0; i < self->tracks->len; i++) {
    Track *track = g_ptr_array_index (self->tracks, i);

    presume_caps (track);
    set_payload_type (track, &n_video, &n_audio);
    track->index = track->caps && caps->len < RELAY_MAX_TRACKS ? (gint) caps->len : -1;
    track->mapped = FALSE;
    if (track->index >= 0)
      g_ptr_array_add (caps, gst_caps_ref (track->caps));
  }
  return caps;
}

// ---- packets ----

static void
find_start_time (Tracks *self)
{
  GstClock *clock;

  if (self->start_unix)
    return;
  clock = gst_element_get_clock (self->pipeline);
  if (!clock)
    return;
  self->start_unix =
      g_get_real_time () * 1000
      - (gint64) (gst_clock_get_time (clock) - gst_element_get_base_time (self->pipeline));
  gst_object_unref (clock);
}

// Returns the RTP timestamp of the instant at which this description began, which is common to all
// tracks.
static guint64
timestamp_at_origin (Tracks *self, const Packet *packet, const WeirRtp *rtp, gint rate)
{
  guint64 ticks;

  if (packet->time >= self->origin) {
    ticks = gst_util_uint64_scale_round (packet->time - self->origin, (guint) rate, GST_SECOND);
    return (guint32) (rtp->timestamp - ticks);
  }
  ticks = gst_util_uint64_scale_round (self->origin - packet->time, (guint) rate, GST_SECOND);
  return (guint32) (rtp->timestamp + ticks);
}

// Returns the base of a track's first packet, which places it relative to the other tracks, and
// sets its mapping to NTP time.
static guint64
place_track (Tracks *self, Track *track, const Packet *packet, WeirNtpMap *map)
{
  guint8 header[WEIR_RTP_HEADER];
  gint rate = 0;
  WeirRtp rtp;

  if (!GST_CLOCK_TIME_IS_VALID (packet->time)
      || gst_buffer_extract (packet->packet, 0, header, sizeof header) < sizeof header
      || weir_rtp_parse_head (header, sizeof header, sizeof header, 0, &rtp) < 0)
    return RELAY_NO_BASE;
  if (!gst_structure_get_int (gst_caps_get_structure (track->caps, 0), "clock-rate", &rate))
    return RELAY_NO_BASE;
  find_start_time (self);
  track->mapped = TRUE;
  if (!GST_CLOCK_TIME_IS_VALID (self->origin))
    self->origin = packet->time;
  *map = (WeirNtpMap) { .known = self->start_unix != 0,
    .ntp = weir_ntp_from_unix (self->start_unix + (gint64) packet->time),
    .timestamp = rtp.timestamp,
    .ssrc = rtp.ssrc };
  return timestamp_at_origin (self, packet, &rtp, rate);
}

static GstBuffer *
with_payload_type (GstBuffer *packet, gint pt)
{
  GstMapInfo map;

  packet = gst_buffer_make_writable (packet);
  if (gst_buffer_map_range (packet, 0, 1, &map, GST_MAP_READWRITE)) {
    if (map.size >= 2)
      map.data[1] = (guint8) ((map.data[1] & 0x80) | pt);
    gst_buffer_unmap (packet, &map);
  }
  return packet;
}

// Takes ownership of the packet's buffer. Call without the lock.
static void
deliver (Tracks *self, guint index, Packet *packet, guint64 base, const WeirNtpMap *map)
{
  const PullContext *context = self->context;

  (packet->more ? relay_push_more : relay_push) (
      context->source, index, packet->packet, packet->now, base);
  if (map->known)
    relay_set_ntp_map (context->source, index, map);
  context->callbacks->packet (context->owner, packet->now);
}

// Takes ownership of the packet's buffer. Call with the lock held; releases it and takes it again.
static void
forward (Tracks *self, Packet *packet)
{
  Track *track = packet->track;
  guint64 base = RELAY_NO_BASE;
  gint index = track->index;
  WeirNtpMap map = { 0 };

  if (index < 0) { // the track was not known when the wait ended
    gst_buffer_unref (packet->packet);
    return;
  }
  if (!track->mapped)
    base = place_track (self, track, packet, &map);
  if (track->pt != track->made_pt)
    packet->packet = with_payload_type (packet->packet, track->pt);
  g_mutex_unlock (&self->lock);
  deliver (self, (guint) index, packet, base, &map);
  g_mutex_lock (&self->lock);
}

void
tracks_open_description (Tracks *self)
{
  const PullContext *context = self->context;
  GPtrArray *caps = number_tracks (self);
  Packet *packet;

  self->draining = TRUE;
  self->stale = FALSE;
  self->origin = GST_CLOCK_TIME_NONE;
  g_mutex_unlock (&self->lock);
  context->callbacks->begun (context->owner, relay_source_begin (context->source, caps));
  g_ptr_array_unref (caps);
  g_mutex_lock (&self->lock);

  while (!self->stale && (packet = g_queue_pop_head (&self->held))) {
    forward (self, packet);
    g_free (packet);
  }
  self->draining = FALSE;
  self->open = !self->stale;
}

gboolean
tracks_is_time (Tracks *self, gint64 now)
{
  const Packet *first = g_queue_peek_head (&self->held);

  if (self->draining || !first)
    return FALSE;
  if (self->complete && tracks_all_known (self))
    return TRUE;
  return now - first->now > MIN (HOLD_LIMIT_MS, self->context->config->connect_timeout_ms / 2)
                                * (gint64) GST_MSECOND;
}

static void
take_packet (Track *track, GstSample *sample, GstBuffer *buffer, gboolean more)
{
  Tracks *self = track->owner;
  Packet packet = { track, gst_buffer_ref (buffer),
    gst_segment_to_running_time (
        gst_sample_get_segment (sample), GST_FORMAT_TIME, GST_BUFFER_PTS (buffer)),
    clock_now (), more };

  g_mutex_lock (&self->lock);
  tracks_set_caps (track, gst_sample_get_caps (sample));
  if (self->open && track->index < 0)
    tracks_close_description (self); // the track became known after the wait ended
  if (self->open) {
    forward (self, &packet);
  } else {
    g_queue_push_tail (&self->held, g_memdup2 (&packet, sizeof packet));
    if (tracks_is_time (self, packet.now))
      tracks_open_description (self);
  }
  g_mutex_unlock (&self->lock);
}

GstFlowReturn
tracks_on_sample (GstAppSink *sink, gpointer data)
{
  Track *track = data;
  GstSample *sample = gst_app_sink_pull_sample (sink);
  GstBufferList *list;

  if (!sample)
    return GST_FLOW_OK;
  if (g_atomic_int_get (&track->owner->context->cancelled)) {
    gst_sample_unref (sample);
    return GST_FLOW_OK;
  }
  list = gst_sample_get_buffer_list (sample);
  if (list) {
    for (guint i = 0, n = gst_buffer_list_length (list); i < n; i++)
      take_packet (track, sample, gst_buffer_list_get (list, i), i + 1 < n);
  } else if (gst_sample_get_buffer (sample)) {
    take_packet (track, sample, gst_sample_get_buffer (sample), FALSE);
  }
  gst_sample_unref (sample);
  return GST_FLOW_OK;
}
