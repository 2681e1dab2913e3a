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

typedef struct {
  PublicationTrack media; // first
  gint64 ssrc;            // of its last packet; -1: none came
  WeirLayers layers;
  gint64 key_at;    // atomic: when the last keyframe began, ns
  gint64 key_asked; // when webrtc_intake_refresh() asked for one; guarded by the intake's lock
} Track;

struct _WebrtcIntake {
  GObject *srtp;
  GPtrArray *tracks; // of Track

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
track_new (PublicationTracks *shared, GstCaps *caps, guint index)
{
  static const WeirIngestOps ops = PUBLICATION_TRACK_OPS (NULL);
  Track *self = g_new0 (Track, 1);
  WeirTrackSettings settings;

  self->ssrc = -1;
  self->layers.codec = relay_caps_get_codec (caps);
  publication_track_init (&self->media, shared, caps);
  self->media.media.index = index;
  settings = publication_track_settings (&self->media);
  settings.unordered = TRUE;
  settings.reorder = WAITING;
  settings.key = WEIR_KEY_NONE;
  settings.report_interval_ns = 0;
  if (engine_track_add (&self->media.media, &settings, WEIR_INGEST_NO_SOCKETS, &ops) < 0)
    g_clear_pointer (&self, track_free);
  return self;
}

static gboolean
add_tracks (WebrtcIntake *self, PublicationTracks *shared, const WebrtcIntakeParts *parts)
{
  for (guint i = 0; i < parts->choices->len; i++) {
    GstCaps *caps =
        sdp_sent_make_caps (parts->offer, &g_array_index (parts->choices, AnswerChoice, i));
    Track *track = track_new (shared, caps, i);

    if (!track)
      return FALSE;
    g_ptr_array_add (self->tracks, track);
  }
  return TRUE;
}

static void
describe_track (
    WeirReceiveTrack *track, const OfferMedia *line, const OfferFormat *format, const GstCaps *caps)
{
  if (line->mid && strlen (line->mid) <= WEIR_RECEIVE_MID_MAX)
    g_strlcpy (track->mid, line->mid, sizeof track->mid);
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
  WeirReceiveSettings settings = { .n_tracks = parts->choices->len,
    .window_ns = WAIT_NS,
    .reduced_size = TRUE,
    .ssrc = g_random_int () };

  g_strlcpy (settings.cname, parts->cname, sizeof settings.cname);
  for (guint i = 0; i < parts->choices->len; i++) {
    const AnswerChoice *choice = &g_array_index (parts->choices, AnswerChoice, i);
    const OfferMedia *line = g_ptr_array_index (parts->offer->media, choice->media);
    const OfferFormat *format = &g_array_index (line->formats, OfferFormat, choice->format);

    describe_track (&settings.tracks[i], line, format,
        ((Track *) g_ptr_array_index (self->tracks, i))->media.media.caps);
    settings.reduced_size &= line->rsize;
    if (line->mid_id)
      settings.mid_id = (guint8) line->mid_id;
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
  if (!add_tracks (self, shared, parts) || !open_receiver (self, parts))
    g_clear_pointer (&self, webrtc_intake_free);
  return self;
}

void
webrtc_intake_free (WebrtcIntake *self)
{
  g_ptr_array_unref (self->tracks);
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

    g_ptr_array_add (caps, gst_caps_ref (track->media.media.caps));
  }
  return caps;
}

// ---- what comes ----

static void
look_for_key (Track *track, const guint8 *packet, gsize size, gint64 now)
{
  WeirLayer layer;
  WeirRtp rtp;

  if (weir_rtp_parse (packet, size, &rtp) == 0
      && weir_layers_read (&track->layers, packet + rtp.payload_offset, rtp.payload_length, &layer)
      && layer.keyframe)
    __atomic_store_n (&track->key_at, now, __ATOMIC_RELAXED);
}

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
  look_for_key (track, received.data, received.len, now);
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

void
webrtc_intake_ask_key (WebrtcIntake *self, guint track)
{
  g_mutex_lock (&self->lock);
  if (track < self->tracks->len)
    weir_receive_ask_key (self->receive, track);
  g_mutex_unlock (&self->lock);
}

// Of audio, each packet counts as a keyframe.
void
webrtc_intake_refresh (WebrtcIntake *self, gint64 now)
{
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->tracks->len; i++) {
    Track *track = g_ptr_array_index (self->tracks, i);
    gint64 last = MAX (__atomic_load_n (&track->key_at, __ATOMIC_RELAXED), track->key_asked);

    if (now - last >= KEY_INTERVAL_NS) {
      track->key_asked = now;
      weir_receive_ask_key (self->receive, i);
    }
  }
  g_mutex_unlock (&self->lock);
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
