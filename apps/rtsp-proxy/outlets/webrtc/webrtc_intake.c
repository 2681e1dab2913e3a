// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/webrtc_intake.h"

#include <string.h>

#include "relay/relay_caps.h"
#include "rtp/rtcp_read.h"
#include "webrtc/receive.h"

// How long packets behind a lost one wait for it: for several requests, also on long ways.
#define WAIT_NS G_GINT64_CONSTANT (250000000)
#define WAITING ((WeirReorderLimits) { WEIR_REORDER_PACKETS_MAX, 1024 * 1024, WAIT_NS })
// Browsers make a keyframe only when they are asked. Readers begin with one, and segments do.
#define KEY_INTERVAL_NS G_GINT64_CONSTANT (2000000000)
// A publisher without transport-wide feedback adapts by its losses up to this.
#define REMB_BPS 20000000

G_STATIC_ASSERT (WEBRTC_INTAKE_ROOM >= WEIR_RECEIVE_RTCP_MAX + 64);

static guint64 n_left_out[WEBRTC_INTAKE_REASONS]; // atomic

// A track, or a layer of one.
typedef struct {
  PublicationTrack media;     // first
  WebrtcSimulcast *simulcast; // that takes its packets, or NULL
  guint layer;
  gint64 ssrc; // of its last packet; -1: none came
  WeirCodec codec;
  gint64 key_at;    // atomic: when the last keyframe began, ns
  gint64 key_asked; // when webrtc_intake_refresh() asked for one; its thread's
} Track;

struct _WebrtcIntake {
  GObject *srtp;
  GPtrArray *tracks;          // of Track, in the order of those of `receive`
  WebrtcSimulcast *simulcast; // NULL: the publisher sends one layer
  guint first_layer;          // the track of it

  GMutex lock; // guards `receive`
  WeirReceive *receive;
};

// ---- counts ----

static void
leave_out (WebrtcIntakeReason reason)
{
  __atomic_add_fetch (&n_left_out[reason], 1, __ATOMIC_RELAXED);
}

guint64
webrtc_intake_count (WebrtcIntakeReason reason)
{
  return __atomic_load_n (&n_left_out[reason], __ATOMIC_RELAXED);
}

const gchar *
webrtc_intake_get_reason (WebrtcIntakeReason reason)
{
  static const gchar *const names[] = {
    [WEBRTC_INTAKE_FORGED] = "forged",
    [WEBRTC_INTAKE_PADDING] = "padding",
    [WEBRTC_INTAKE_DUPLICATE] = "duplicate",
    [WEBRTC_INTAKE_LATE] = "late",
    [WEBRTC_INTAKE_STRAY] = "stray",
    [WEBRTC_INTAKE_MALFORMED] = "malformed",
  };

  return names[reason];
}

// ---- tracks of a publisher with several layers, as publication_track.h has the others ----

static void
on_packet (gpointer data, const WeirIngestPacket *packet)
{
  const Track *self = data;

  if (self->codec == WEIR_CODEC_AUDIO)
    webrtc_simulcast_take_sound (self->simulcast, self->media.media.index, packet);
  else
    webrtc_simulcast_take (self->simulcast, self->layer, packet);
}

static void
on_reported (gpointer data, const WeirNtpMap *map)
{
  const Track *self = data;

  webrtc_simulcast_report (self->simulcast, self->media.media.index, self->layer, map);
}

static void
on_dropped (gpointer data, WeirIngestDrop reason)
{
  webrtc_simulcast_count (((Track *) data)->simulcast, RELAY_REFUSED + reason, 1);
}

static void
on_repaired (gpointer data, WeirIngestRepair what)
{
  webrtc_simulcast_count (((Track *) data)->simulcast, RELAY_REPAIRED + what, 1);
}

static void
on_settled (gpointer data)
{
  const Track *self = data;

  webrtc_simulcast_settle (self->simulcast, self->media.media.index);
}

// ---- construction ----

static void
track_free (gpointer data)
{
  Track *self = data;

  publication_track_clear (&self->media);
  g_free (self);
}

// The receiver writes the reports and requests of all tracks. Returns NULL if there is no memory.
static Track *
track_new (PublicationTracks *shared, GstCaps *caps, guint index, gboolean is_layered)
{
  static const WeirIngestOps ops = PUBLICATION_TRACK_OPS (NULL);
  static const WeirIngestOps layered = {
    { on_packet, on_reported, .dropped = on_dropped, .repaired = on_repaired }, on_settled
  };
  Track *self = g_new0 (Track, 1);
  WeirTrackSettings settings;

  self->ssrc = -1;
  self->codec = relay_caps_get_codec (caps);
  publication_track_init (&self->media, shared, caps);
  self->media.media.index = index;
  settings = publication_track_settings (&self->media);
  settings.unordered = TRUE;
  settings.reorder = WAITING;
  settings.key = WEIR_KEY_NONE;
  settings.report_interval_ns = 0;
  if (engine_track_add (
          &self->media.media, &settings, WEIR_INGEST_NO_SOCKETS, is_layered ? &layered : &ops)
      < 0)
    g_clear_pointer (&self, track_free);
  return self;
}

static const AnswerChoice *
get_choice (const WebrtcIntakeParts *parts, guint i)
{
  return &g_array_index (parts->choices, AnswerChoice, i);
}

// Returns the number of the choice with several layers, or -1.
static gint
find_layered (const WebrtcIntakeParts *parts)
{
  for (guint i = 0; i < parts->choices->len; i++) {
    if (get_choice (parts, i)->n_layers > 0)
      return (gint) i;
  }
  return -1;
}

// Adds the track of choice `i`, or one for each of its layers.
static gboolean
add_tracks (WebrtcIntake *self, PublicationTracks *shared, const WebrtcIntakeParts *parts, guint i)
{
  const AnswerChoice *choice = get_choice (parts, i);
  const gboolean is_layered = find_layered (parts) >= 0;

  if (choice->n_layers > 0)
    self->first_layer = self->tracks->len;
  for (guint layer = 0; layer < MAX (choice->n_layers, 1); layer++) {
    Track *track = track_new (shared, sdp_sent_make_caps (parts->offer, choice), i, is_layered);

    if (!track)
      return FALSE;
    track->layer = layer;
    g_ptr_array_add (self->tracks, track);
  }
  return TRUE;
}

static gboolean
add_all_tracks (WebrtcIntake *self, PublicationTracks *shared, const WebrtcIntakeParts *parts)
{
  for (guint i = 0; i < parts->choices->len; i++) {
    if (!add_tracks (self, shared, parts, i))
      return FALSE;
  }
  return TRUE;
}

static void
begin_simulcast (WebrtcIntake *self, PublicationTracks *shared, const WebrtcIntakeParts *parts)
{
  const gint track = find_layered (parts);
  const AnswerChoice *choice = track >= 0 ? get_choice (parts, (guint) track) : NULL;
  WebrtcSimulcastParts own = { shared, parts->path, parts->peer, parts->identity,
    .ask_key = parts->ask_layer, .owner = parts->owner, .free_owner = parts->free_owner };
  const OfferMedia *line;

  if (!choice) {
    parts->free_owner (parts->owner);
    return;
  }
  line = g_ptr_array_index (parts->offer->media, choice->media);
  own.caps = webrtc_intake_dup_caps (self);
  own.track = (guint) track;
  own.rids = (const gchar *const *) line->layers.rids;
  own.n_layers = choice->n_layers;
  self->simulcast = webrtc_simulcast_new (&own);
  g_ptr_array_unref (own.caps);
  for (guint i = 0; i < self->tracks->len; i++)
    ((Track *) g_ptr_array_index (self->tracks, i))->simulcast = self->simulcast;
}

static void
describe_track (WeirReceiveTrack *track, const OfferMedia *line, const OfferFormat *format,
    const GstCaps *caps, const gchar *rid)
{
  if (line->mid && strlen (line->mid) <= WEIR_RECEIVE_MID_MAX)
    g_strlcpy (track->mid, line->mid, sizeof track->mid);
  if (rid)
    g_strlcpy (track->rid, rid, sizeof track->rid);
  track->payloads[0] = (WeirReceivePayload) { (guint8) format->type,
    sdp_answer_has_rtx (format) ? (guint8) format->rtx : 0, relay_caps_get_codec (caps),
    format->clock_rate };
  track->n_payloads = 1;
  track->nack = format->nack;
  track->pli = format->pli;
}

// Makes the receiver as the answer has it (sdp_answer_write()).
static gboolean
open_receiver (WebrtcIntake *self, const WebrtcIntakeParts *parts)
{
  WeirReceiveSettings settings = { .n_tracks = self->tracks->len,
    .window_ns = WAIT_NS,
    .reduced_size = TRUE,
    .ssrc = g_random_int () };

  g_strlcpy (settings.cname, parts->cname, sizeof settings.cname);
  for (guint i = 0; i < self->tracks->len; i++) {
    const Track *track = g_ptr_array_index (self->tracks, i);
    const AnswerChoice *choice = get_choice (parts, track->media.media.index);
    const OfferMedia *line = g_ptr_array_index (parts->offer->media, choice->media);
    const OfferFormat *format = &g_array_index (line->formats, OfferFormat, choice->format);

    // A client may send all of its layers although one is taken.
    describe_track (&settings.tracks[i], line, format, track->media.media.caps,
        line->layers.n > 0 ? line->layers.rids[track->layer] : NULL);
    settings.reduced_size &= line->rsize;
    if (line->mid_id)
      settings.mid_id = (guint8) line->mid_id;
    if (line->layers.n > 0) {
      settings.rid_id = (guint8) line->rid_id;
      settings.repaired_rid_id = (guint8) line->repaired_rid_id;
    }
    if (sdp_answer_has_transport_cc (line, format))
      settings.twcc_id = (guint8) line->transport_id;
    else if (format->remb)
      settings.remb_bps = REMB_BPS;
  }
  if (settings.twcc_id)
    settings.remb_bps = 0;
  return weir_receive_new (&settings, &self->receive) == 0;
}

WebrtcIntake *
webrtc_intake_new (PublicationTracks *shared, const WebrtcIntakeParts *parts)
{
  WebrtcIntake *self = g_new0 (WebrtcIntake, 1);

  g_mutex_init (&self->lock);
  self->tracks = g_ptr_array_new_with_free_func (track_free);
  self->srtp = g_object_new (g_type_from_name ("WeirSrtp"), "destination", parts->host, "profile",
      parts->keys->profile, "send-key", parts->keys->send, "receive-key", parts->keys->receive,
      NULL);
  if (!add_all_tracks (self, shared, parts) || !open_receiver (self, parts)) {
    webrtc_intake_free (self, NULL);
    return NULL;
  }
  begin_simulcast (self, shared, parts);
  return self;
}

void
webrtc_intake_free (WebrtcIntake *self, const gchar *reason)
{
  g_ptr_array_unref (self->tracks);
  if (self->simulcast)
    webrtc_simulcast_end (self->simulcast, reason);
  g_clear_pointer (&self->receive, weir_receive_free);
  g_object_unref (self->srtp);
  g_mutex_clear (&self->lock);
  g_free (self);
}

GPtrArray *
webrtc_intake_dup_caps (WebrtcIntake *self)
{
  GPtrArray *caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);

  for (guint i = 0; i < self->tracks->len; i++) {
    const Track *track = g_ptr_array_index (self->tracks, i);

    if (track->layer == 0)
      g_ptr_array_add (caps, gst_caps_ref (track->media.media.caps));
  }
  return caps;
}

// ---- what comes ----

static void
take_media (WebrtcIntake *self, guint8 *packet, gsize size, gint64 arrival, gint64 now)
{
  static const WebrtcIntakeReason reasons[WEIR_RECEIVE_KINDS] = {
    [WEIR_RECEIVE_PADDING] = WEBRTC_INTAKE_PADDING,
    [WEIR_RECEIVE_DUPLICATE] = WEBRTC_INTAKE_DUPLICATE,
    [WEIR_RECEIVE_LATE] = WEBRTC_INTAKE_LATE,
    [WEIR_RECEIVE_STRAY] = WEBRTC_INTAKE_STRAY,
    [WEIR_RECEIVE_CROWDED] = WEBRTC_INTAKE_STRAY,
    [WEIR_RECEIVE_MALFORMED] = WEBRTC_INTAKE_MALFORMED,
  };
  WeirReceived received;
  Track *track;

  g_mutex_lock (&self->lock);
  weir_receive_take (self->receive, packet, size, arrival, &received);
  g_mutex_unlock (&self->lock);
  if (received.kind != WEIR_RECEIVE_MEDIA) {
    leave_out (reasons[received.kind]);
    return;
  }
  track = g_ptr_array_index (self->tracks, received.track);
  track->ssrc = weir_rtp_get_ssrc (received.data);
  if (received.begins_key)
    __atomic_store_n (&track->key_at, now, __ATOMIC_RELAXED);
  weir_ingest_push (track->media.media.in, FALSE, received.data, received.len, now);
}

// The tracks need sender reports, for their clocks.
static void
take_rtcp (WebrtcIntake *self, guint8 *packet, gsize size, gint64 arrival, gint64 now)
{
  WeirNtpMap map;
  int result;

  g_mutex_lock (&self->lock);
  result = weir_receive_take_rtcp (self->receive, packet, size, arrival);
  g_mutex_unlock (&self->lock);
  if (result < 0)
    leave_out (WEBRTC_INTAKE_MALFORMED);
  for (guint i = 0; result == 0 && i < self->tracks->len; i++) {
    Track *track = g_ptr_array_index (self->tracks, i);

    if (track->ssrc >= 0 && weir_rtcp_find_sr_of (packet, size, (guint32) track->ssrc, &map) == 0)
      weir_ingest_push (track->media.media.in, TRUE, packet, size, now);
  }
}

gboolean
webrtc_intake_take (
    WebrtcIntake *self, guint8 *packet, gsize size, gboolean is_rtcp, gint64 arrival, gint64 now)
{
  gint plain;

  g_signal_emit_by_name (
      self->srtp, is_rtcp ? "unprotect" : "unprotect-rtp", packet, (guint) size, &plain);
  if (plain <= 0) {
    leave_out (WEBRTC_INTAKE_FORGED);
    return FALSE;
  }
  if (is_rtcp)
    take_rtcp (self, packet, (gsize) plain, arrival, now);
  else
    take_media (self, packet, (gsize) plain, arrival, now);
  return TRUE;
}

// ---- feedback ----

static void
ask_key (WebrtcIntake *self, guint i)
{
  g_mutex_lock (&self->lock);
  if (i < self->tracks->len)
    weir_receive_ask_key (self->receive, i);
  g_mutex_unlock (&self->lock);
}

void
webrtc_intake_ask_layer (WebrtcIntake *self, guint layer)
{
  ask_key (self, self->first_layer + layer);
}

void
webrtc_intake_ask_key (WebrtcIntake *self, guint track)
{
  const Track *pictures = g_ptr_array_index (self->tracks, self->first_layer);

  if (!self->simulcast)
    ask_key (self, track);
  else if (track == pictures->media.media.index)
    webrtc_intake_ask_layer (self, webrtc_simulcast_get_layer (self->simulcast));
}

static gboolean
is_used (const Track *track)
{
  return !track->simulcast || webrtc_simulcast_is_used (track->simulcast, track->layer);
}

// Of audio, each packet counts as a keyframe.
void
webrtc_intake_refresh (WebrtcIntake *self, gint64 now)
{
  for (guint i = 0; i < self->tracks->len; i++) {
    Track *track = g_ptr_array_index (self->tracks, i);
    gint64 last = MAX (__atomic_load_n (&track->key_at, __ATOMIC_RELAXED), track->key_asked);

    if (now - last >= KEY_INTERVAL_NS && is_used (track)) {
      track->key_asked = now;
      ask_key (self, i);
    }
  }
}

gint64
webrtc_intake_get_due (WebrtcIntake *self)
{
  gint64 due;

  g_mutex_lock (&self->lock);
  due = weir_receive_due (self->receive);
  g_mutex_unlock (&self->lock);
  return due;
}

gsize
webrtc_intake_write (WebrtcIntake *self, gint64 now, guint8 out[WEBRTC_INTAKE_ROOM])
{
  gint size;

  g_mutex_lock (&self->lock);
  size = (gint) weir_receive_write_rtcp (self->receive, now, out);
  g_mutex_unlock (&self->lock);
  if (size > 0)
    g_signal_emit_by_name (
        self->srtp, "protect", out, (guint) size, (guint) WEBRTC_INTAKE_ROOM, &size);
  return (gsize) MAX (size, 0);
}
