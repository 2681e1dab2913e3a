// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/tracks.h"

#include <gst/app/gstappsink.h>

#include "base/clock.h"
#include "base/key_event.h"
#include "base/element.h"
#include "relay/relay_caps.h"
#include "rtp/rtp.h"

// A stream that was announced and brings nothing, or no keyframe yet, is waited for no longer than
// this, nor longer than half of the time that the upstream has to answer.
#define HOLD_LIMIT_MS 3000

typedef struct {
  Tracks *owner;
  GstElement *branch; // of the pipeline; not owned
  GstElement *sink;   // in it
  gint kind;          // -1: as the payloader has it
  gint made_pt;       // what the payloader writes
  // With the owner's lock:
  GstCaps *seen; // as they last came; NULL before
  GstCaps *caps; // what of them is said to readers
  gint index;    // in the relay, or -1
  gint pt;       // what goes out
  gboolean mapped;
} Track;

typedef struct {
  Track *track;
  GstBuffer *packet;
  GstClockTime time; // running time
  gint64 now;
} Packet;

struct _Tracks {
  const PullContext *context;
  GstElement *pipeline;
  TracksMode mode;
  GMutex lock;       // all below
  GPtrArray *tracks; // of Track
  gboolean complete;
  gboolean draining;   // one thread hands on what was held
  gboolean open;       // the relay knows these tracks, and nothing is held
  gboolean stale;      // they became others since the relay was told
  GQueue held;         // of Packet
  GstClockTime origin; // running time at which this description began
  gint64 start_unix;   // ns, at running time 0; 0 while not known
};

static const TracksKind kinds[] = {
  { "video/x-h264", "h264parse ! video/x-h264,alignment=au",
      "rtph264pay config-interval=-1 aggregate-mode=zero-latency", TRUE,
      "encoding-name=(string)H264, packetization-mode=(string)1" },
  { "video/x-h265", "h265parse ! video/x-h265,alignment=au",
      "rtph265pay config-interval=-1 aggregate-mode=zero-latency", TRUE,
      "encoding-name=(string)H265" },
  { "video/x-vp8", "identity", "rtpvp8pay", TRUE },
  { "video/x-vp9", "identity", "rtpvp9pay", TRUE },
  { "audio/mpeg, mpegversion=(int)4", "aacparse", "rtpmp4gpay", FALSE },
  { "audio/mpeg, mpegversion=(int)2", "aacparse", "rtpmp4gpay", FALSE },
  { "audio/mpeg, mpegversion=(int)1", "mpegaudioparse", "rtpmpapay", FALSE },
  { "audio/x-opus", "identity", "rtpopuspay", FALSE },
};

static void
packet_free (gpointer data)
{
  Packet *packet = data;

  gst_buffer_unref (packet->packet);
  g_free (packet);
}

static void
track_free (gpointer data)
{
  Track *track = data;

  gst_clear_caps (&track->seen);
  gst_clear_caps (&track->caps);
  g_free (track);
}

Tracks *
tracks_new (const PullContext *context, GstElement *pipeline, TracksMode mode)
{
  Tracks *self = g_new0 (Tracks, 1);

  self->context = context;
  self->pipeline = pipeline;
  self->mode = mode;
  self->tracks = g_ptr_array_new_with_free_func (track_free);
  g_queue_init (&self->held);
  g_mutex_init (&self->lock);
  return self;
}

void
tracks_free (Tracks *self)
{
  g_queue_clear_full (&self->held, packet_free);
  g_ptr_array_unref (self->tracks);
  g_mutex_clear (&self->lock);
  g_free (self);
}

// ---- the description ----

// With the lock held, as all of this section.
static void
close_description (Tracks *self)
{
  self->open = FALSE;
  self->stale = TRUE;
  for (guint i = 0; i < self->tracks->len; i++)
    ((Track *) g_ptr_array_index (self->tracks, i))->index = -1;
}

static void
set_caps (Track *track, GstCaps *caps)
{
  GstStructure *s;

  if (!caps || caps == track->seen)
    return;
  gst_caps_replace (&track->seen, caps);
  caps = gst_caps_copy (caps);
  // GStreamer's own words, for what RTP says in profile-level-id.
  s = gst_caps_get_structure (caps, 0);
  gst_structure_remove_fields (s, "profile", "level", "tier", NULL);
  if (track->kind >= 0)
    gst_structure_set (s, "payload", G_TYPE_INT, track->pt, NULL);
  if (track->index >= 0 && !relay_caps_same (track->caps, caps))
    close_description (track->owner);
  gst_caps_take (&track->caps, caps);
}

static gboolean
all_known (Tracks *self)
{
  for (guint i = 0; i < self->tracks->len; i++) {
    if (!((Track *) g_ptr_array_index (self->tracks, i))->caps)
      return FALSE;
  }
  return self->tracks->len > 0;
}

static gint
rank (const Track *track)
{
  return track->kind < 0 ? track->made_pt : track->made_pt % 2 * 128 + track->made_pt;
}

// Video first, whichever came first.
static gint
compare_tracks (gconstpointer a, gconstpointer b)
{
  return rank (*(Track *const *) a) - rank (*(Track *const *) b);
}

// The caps of a track of which there was no keyframe so far.
static void
presume_caps (Track *track)
{
  gchar *text;

  if (track->caps || track->kind < 0 || !kinds[track->kind].known)
    return;
  text = g_strdup_printf ("application/x-rtp, media=(string)video, clock-rate=(int)90000, %s",
      kinds[track->kind].known);
  track->caps = gst_caps_from_string (text);
  g_free (text);
}

// The same for the same tracks, although others were there when the payloader was made.
static void
set_payload_type (Track *track, guint *n_video, guint *n_audio)
{
  if (track->kind < 0)
    return;
  track->pt =
      kinds[track->kind].video ? 96 + 2 * (gint) (*n_video)++ : 97 + 2 * (gint) (*n_audio)++;
  if (track->caps) {
    track->caps = gst_caps_make_writable (track->caps);
    gst_caps_set_simple (track->caps, "payload", G_TYPE_INT, track->pt, NULL);
  }
}

// Caps of the tracks that are known, and a number in the relay for each.
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
find_start (Tracks *self)
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

// The timestamp of the instant at which this description began: what all tracks have in common.
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

// For a track's first packet: where it stands against the other tracks, and in the world's time.
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
  find_start (self);
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

// Without the lock. Takes the packet's buffer.
static void
deliver (Tracks *self, guint index, Packet *packet, guint64 base, const WeirNtpMap *map)
{
  const PullContext *context = self->context;

  relay_push (context->source, index, packet->packet, packet->now, base);
  if (map->known)
    relay_set_ntp_map (context->source, index, map);
  context->callbacks->packet (context->owner, packet->now);
}

// With the lock held; released meanwhile. Takes the packet's buffer.
static void
hand_on (Tracks *self, Packet *packet)
{
  Track *track = packet->track;
  guint64 base = RELAY_NO_BASE;
  gint index = track->index;
  WeirNtpMap map = { 0 };

  if (index < 0) { // it came to nothing before the others could no longer wait
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

// With the lock held; released meanwhile.
static void
open_description (Tracks *self)
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
    hand_on (self, packet);
    g_free (packet);
  }
  self->draining = FALSE;
  self->open = !self->stale;
}

static gboolean
is_time (Tracks *self, gint64 now)
{
  const Packet *first = g_queue_peek_head (&self->held);

  if (self->draining || !first)
    return FALSE;
  if (self->complete && all_known (self))
    return TRUE;
  return now - first->now > MIN (HOLD_LIMIT_MS, self->context->config->connect_timeout_ms / 2)
                                * (gint64) GST_MSECOND;
}

static void
take_packet (Track *track, GstSample *sample, GstBuffer *buffer)
{
  Tracks *self = track->owner;
  Packet packet = { track, gst_buffer_ref (buffer),
    gst_segment_to_running_time (
        gst_sample_get_segment (sample), GST_FORMAT_TIME, GST_BUFFER_PTS (buffer)),
    clock_now () };

  g_mutex_lock (&self->lock);
  set_caps (track, gst_sample_get_caps (sample));
  if (self->open && track->index < 0)
    close_description (self); // one that was not waited for any longer
  if (self->open) {
    hand_on (self, &packet);
  } else {
    g_queue_push_tail (&self->held, g_memdup2 (&packet, sizeof packet));
    if (is_time (self, packet.now))
      open_description (self);
  }
  g_mutex_unlock (&self->lock);
}

static GstFlowReturn
on_sample (GstAppSink *sink, gpointer data)
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
    for (guint i = 0; i < gst_buffer_list_length (list); i++)
      take_packet (track, sample, gst_buffer_list_get (list, i));
  } else if (gst_sample_get_buffer (sample)) {
    take_packet (track, sample, gst_sample_get_buffer (sample));
  }
  gst_sample_unref (sample);
  return GST_FLOW_OK;
}

// ---- branches ----

// Of a pad: the branch that it feeds. A pad that is being removed is no longer linked.
#define BRANCH "weir-branch"

static gint
find_kind (GstCaps *caps)
{
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++) {
    GstCaps *match = gst_caps_from_string (kinds[i].caps);
    gboolean fits = gst_caps_can_intersect (caps, match);

    gst_caps_unref (match);
    if (fits)
      return (gint) i;
  }
  return -1;
}

const TracksKind *
tracks_find_kind (GstCaps *caps)
{
  gint kind = find_kind (caps);

  return kind >= 0 ? &kinds[kind] : NULL;
}

// The first free of 96, 98 ... for video and of 97, 99 ... for audio, so that a track has the same
// whichever is found first. With the lock held.
static gint
draw_payload_type (Tracks *self, gboolean video)
{
  gint pt = video ? 96 : 97;

  for (guint i = 0; i < self->tracks->len; i++) {
    if ((((Track *) g_ptr_array_index (self->tracks, i))->made_pt - pt) % 2 == 0)
      pt += 2;
  }
  return pt;
}

static gchar *
branch_text (Tracks *self, gint kind, gint pt)
{
  const gchar *payloader = kind >= 0 ? kinds[kind].payloader : NULL;

  if (!payloader)
    return g_strdup (self->mode == TRACKS_ARRIVAL ? "fakesink async=false sync=false" : "fakesink");
  if (self->mode == TRACKS_ARRIVAL)
    return g_strdup_printf ("%s ! %s pt=%d ! appsink name=sink buffer-list=true async=false "
                            "sync=false",
        kinds[kind].parser, payloader, pt);
  return g_strdup_printf ("queue max-size-buffers=0 max-size-bytes=4194304 ! %s pt=%d "
                          "! appsink name=sink buffer-list=true max-buffers=64",
      payloader, pt);
}

static void
report_missing (Tracks *self, GstParseContext *parse, GError *error)
{
  gchar **missing = gst_parse_context_get_missing_elements (parse);
  gchar *reason = missing ? element_missing (missing[0]) : g_strdup (error->message);

  self->context->callbacks->ended (self->context->owner, reason);
  g_free (reason);
  g_strfreev (missing);
}

static GstElement *
make_branch (Tracks *self, const gchar *text)
{
  GstParseContext *parse = gst_parse_context_new ();
  GError *error = NULL;
  GstElement *branch =
      gst_parse_bin_from_description_full (text, TRUE, parse, GST_PARSE_FLAG_FATAL_ERRORS, &error);

  if (error)
    report_missing (self, parse, error);
  g_clear_error (&error);
  gst_parse_context_free (parse);
  return branch;
}

// With the lock held.
static void
add_track (Tracks *self, GstElement *branch, gint kind, gint pt)
{
  GstAppSinkCallbacks callbacks = { .new_sample = on_sample };
  Track *track = g_new0 (Track, 1);

  track->owner = self;
  track->branch = branch;
  track->sink = gst_bin_get_by_name (GST_BIN (branch), "sink");
  track->kind = kind;
  track->pt = track->made_pt = pt;
  track->index = -1;
  close_description (self);
  g_ptr_array_add (self->tracks, track);
  gst_app_sink_set_callbacks (GST_APP_SINK (track->sink), &callbacks, track, NULL);
  gst_object_unref (track->sink); // the branch keeps it
}

static void
attach (Tracks *self, GstPad *pad, GstElement *branch)
{
  GstPad *end = gst_element_get_static_pad (branch, "sink");

  gst_bin_add (GST_BIN (self->pipeline), branch);
  gst_pad_link (pad, end);
  g_object_set_data (G_OBJECT (pad), BRANCH, branch);
  gst_object_unref (end);
  gst_element_sync_state_with_parent (branch);
}

// One that ends while others go on: no end of the pipeline.
static GstPadProbeReturn
drop_eos (GstPad *pad, GstPadProbeInfo *info, gpointer unused)
{
  return GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) == GST_EVENT_EOS ? GST_PAD_PROBE_DROP
                                                                           : GST_PAD_PROBE_OK;
}

void
tracks_add_stream (Tracks *self, GstPad *pad)
{
  // Current caps can come with the first frame only, if parsebin has the parser convert it.
  GstCaps *caps = gst_pad_query_caps (pad, NULL);
  gint kind = find_kind (caps), pt = 0;
  GstElement *branch;
  gchar *text;

  gst_caps_unref (caps);
  g_mutex_lock (&self->lock);
  if (self->tracks->len == RELAY_MAX_TRACKS)
    kind = -1;
  if (kind >= 0)
    pt = draw_payload_type (self, kinds[kind].video);
  text = branch_text (self, kind, pt);
  branch = make_branch (self, text);
  g_free (text);
  if (branch && kind >= 0)
    add_track (self, branch, kind, pt);
  g_mutex_unlock (&self->lock);
  if (!branch)
    return;
  if (self->mode == TRACKS_ARRIVAL)
    gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, drop_eos, NULL, NULL);
  attach (self, pad, branch);
}

// What is held of the track goes with it. With the lock held.
static void
forget_track (Tracks *self, Track *track)
{
  GList *next;

  for (GList *l = self->held.head; l; l = next) {
    next = l->next;
    if (((Packet *) l->data)->track == track) {
      packet_free (l->data);
      g_queue_delete_link (&self->held, l);
    }
  }
  close_description (self);
  g_ptr_array_remove (self->tracks, track);
}

void
tracks_remove_stream (Tracks *self, GstPad *pad)
{
  GstElement *branch = g_object_steal_data (G_OBJECT (pad), BRANCH);

  if (!branch)
    return;
  gst_element_set_locked_state (branch, TRUE);
  gst_element_set_state (branch, GST_STATE_NULL);
  g_mutex_lock (&self->lock);
  for (guint i = self->tracks->len; i-- > 0;) {
    Track *track = g_ptr_array_index (self->tracks, i);

    if (track->branch == branch)
      forget_track (self, track);
  }
  // Who comes after the last begins anew.
  self->complete = self->tracks->len > 0 && self->complete;
  g_mutex_unlock (&self->lock);
  gst_bin_remove (GST_BIN (self->pipeline), branch);
}

gboolean
tracks_add_payloader (Tracks *self, GstElement *bin, GstElement *payloader)
{
  GstPad *inner = gst_element_get_static_pad (payloader, "src");
  GstElement *branch;
  GstPad *pad;

  if (!inner || gst_pad_is_linked (inner)) {
    gst_clear_object (&inner);
    return FALSE;
  }
  pad = gst_ghost_pad_new (NULL, inner);
  gst_object_unref (inner);
  gst_element_add_pad (bin, pad);
  branch = make_branch (self, "queue max-size-buffers=0 max-size-bytes=4194304 "
                              "! appsink name=sink buffer-list=true max-buffers=64");
  if (branch) {
    g_mutex_lock (&self->lock);
    add_track (self, branch, -1, (gint) self->tracks->len);
    g_mutex_unlock (&self->lock);
    attach (self, pad, branch);
  }
  return branch != NULL;
}

void
tracks_complete (Tracks *self)
{
  gboolean none;

  g_mutex_lock (&self->lock);
  self->complete = TRUE;
  none = self->tracks->len == 0;
  if (is_time (self, clock_now ()))
    open_description (self);
  g_mutex_unlock (&self->lock);
  if (none)
    self->context->callbacks->ended (self->context->owner, "no track in it can be relayed");
}

gboolean
tracks_begin (Tracks *self)
{
  gboolean ok;

  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->tracks->len; i++) {
    Track *track = g_ptr_array_index (self->tracks, i);
    GstPad *pad = gst_element_get_static_pad (track->sink, "sink");
    GstCaps *caps = gst_pad_get_current_caps (pad);

    set_caps (track, caps);
    gst_clear_caps (&caps);
    gst_object_unref (pad);
  }
  self->complete = TRUE;
  ok = all_known (self);
  if (ok && !self->open && !self->draining)
    open_description (self);
  g_mutex_unlock (&self->lock);
  return ok;
}

void
tracks_ask_key (Tracks *self, guint index)
{
  GstElement *sink = NULL;
  GstPad *pad;

  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->tracks->len; i++) {
    Track *track = g_ptr_array_index (self->tracks, i);

    if (track->index == (gint) index)
      sink = gst_object_ref (track->sink);
  }
  g_mutex_unlock (&self->lock);
  if (!sink)
    return;
  pad = gst_element_get_static_pad (sink, "sink");
  gst_pad_push_event (pad, key_event_new ());
  gst_object_unref (pad);
  gst_object_unref (sink);
}
