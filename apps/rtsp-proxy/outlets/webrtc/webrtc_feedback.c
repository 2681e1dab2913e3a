// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/webrtc_feedback.h"

#include "readers/sink_sample.h"
#include "rtp/rtcp_read.h"
#include "rtp/rtcp_write.h"

#define NACKS_MAX 512                              // numbers of a packet
#define ROUND_TRIP_NS G_GINT64_CONSTANT (50000000) // until it is measured
// Beside a round trip, a keyframe takes so long to be sent, received and missed.
#define ARRIVES_NS G_GINT64_CONSTANT (50000000)

static guint64 n_forged; // atomic

// What the reader has told of a place.
typedef struct {
  guint64 reports;
  WeirRtcpBlock last;
} Heard;

struct _WebrtcFeedback {
  gatomicrefcount refs;
  GObject *srtp;
  WebrtcStream *stream;
  GPtrArray *places;
  gchar *cname;
  guint64 *n_video; // atomic: reports of the video

  GMutex lock;  // guards the fields below
  Heard *heard; // by the number of the place
  WeirSrLog sent;
  gint64 round_trip; // ns
};

WebrtcFeedback *
webrtc_feedback_new (GObject *srtp, WebrtcStream *stream, GPtrArray *places, const gchar *cname)
{
  WebrtcFeedback *self = g_new0 (WebrtcFeedback, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->srtp = g_object_ref (srtp);
  self->stream = webrtc_stream_ref (stream);
  self->places = g_ptr_array_ref (places);
  self->cname = g_strdup (cname);
  self->heard = g_new0 (Heard, places->len);
  self->n_video = g_atomic_rc_box_new0 (guint64);
  self->round_trip = ROUND_TRIP_NS;
  return self;
}

WebrtcFeedback *
webrtc_feedback_ref (WebrtcFeedback *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
webrtc_feedback_unref (WebrtcFeedback *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_object_unref (self->srtp);
  webrtc_stream_unref (self->stream);
  g_ptr_array_unref (self->places);
  g_mutex_clear (&self->lock);
  g_atomic_rc_box_release (self->n_video);
  g_free (self->heard);
  g_free (self->cname);
  g_free (self);
}

// ---- what comes ----

static void
note_report (WebrtcFeedback *self, const WeirRtcpReport *report, gint64 now)
{
  gint64 round_trip;

  g_mutex_lock (&self->lock);
  for (size_t i = 0; i < report->n_blocks; i++) {
    round_trip = weir_sr_log_round_trip (&self->sent, &report->blocks[i], now);
    if (round_trip >= 0)
      self->round_trip = round_trip;
    for (guint j = 0; j < self->places->len; j++) {
      const WebrtcPlace *place = g_ptr_array_index (self->places, j);

      if (report->blocks[i].ssrc == place->ssrc) {
        self->heard[j].last = report->blocks[i];
        self->heard[j].reports++;
        if (place->is_video)
          __atomic_add_fetch (self->n_video, 1, __ATOMIC_RELAXED);
      }
    }
  }
  g_mutex_unlock (&self->lock);
}

static gint64
get_round_trip (WebrtcFeedback *self)
{
  gint64 round_trip;

  g_mutex_lock (&self->lock);
  round_trip = self->round_trip;
  g_mutex_unlock (&self->lock);
  return round_trip;
}

// The keyframe that left lately may be on its way yet. If not, the reader lacks a part of it, and
// gets all of it once more.
static void
answer_key_request (WebrtcFeedback *self, WebrtcPlace *place, gint64 now)
{
  WebrtcStream *guest_of = webrtc_place_dup_guest_of (place);
  const gint64 left = guest_of ? webrtc_stream_ask_key (guest_of, 0, now)
                               : webrtc_stream_ask_key (self->stream, place->track, now);

  g_clear_pointer (&guest_of, webrtc_stream_unref);
  if (left == 0 || left == place->again || now - left < get_round_trip (self) + ARRIVES_NS)
    return;
  place->again = left;
  webrtc_place_rejoin (place);
}

WebrtcFeedbackVerdict
webrtc_feedback_take (WebrtcFeedback *self, guint8 *packet, gsize size, gint64 now)
{
  WeirRtcpReport report = { 0 };
  uint16_t seqs[NACKS_MAX];
  gint plain;
  int status;

  g_signal_emit_by_name (self->srtp, "unprotect", packet, (guint) size, &plain);
  if (plain <= 0) {
    __atomic_add_fetch (&n_forged, 1, __ATOMIC_RELAXED);
    return WEBRTC_FEEDBACK_FORGED;
  }
  size = (gsize) plain;
  g_signal_emit_by_name (self->srtp, "feedback", packet, (guint) size, (guint64) now);
  // One of reduced size (RFC 5506) has no report.
  status = weir_rtcp_read (packet, size, &report);
  if (status == 0)
    note_report (self, &report, now);
  for (guint i = 0; i < self->places->len; i++) {
    WebrtcPlace *place = g_ptr_array_index (self->places, i);
    size_t n = weir_rtcp_read_nacks (packet, size, place->ssrc, seqs, NACKS_MAX);

    if (n > 0)
      webrtc_place_resend (place, seqs, n, get_round_trip (self));
    if (place->is_video && weir_rtcp_asks_key (packet, size, place->ssrc))
      answer_key_request (self, place, now);
  }
  return report.bye ? WEBRTC_FEEDBACK_BYE : WEBRTC_FEEDBACK_TAKEN;
}

// ---- what goes ----

gsize
webrtc_feedback_write (
    WebrtcFeedback *self, guint place, gboolean bye, gint64 now, guint8 out[WEBRTC_FEEDBACK_ROOM])
{
  WebrtcPlace *at = g_ptr_array_index (self->places, place);
  WeirNtpMap map = { .known = true, .ssrc = at->ssrc };
  GstStructure *stats;
  gint size = 0;

  if (!webrtc_stream_get_clock (self->stream, at->track, now, &map.timestamp, &map.ntp))
    return 0;
  g_mutex_lock (&self->lock);
  weir_sr_log_add (&self->sent, &map, now);
  g_mutex_unlock (&self->lock);
  stats = webrtc_place_dup_stats (at);
  size = (gint) weir_rtcp_write_sr (out, WEBRTC_FEEDBACK_ROOM, &map,
      (guint32) sink_sample_get (stats, "packets-sent"),
      (guint32) sink_sample_get (stats, "bytes-sent"), self->cname);
  gst_structure_free (stats);
  if (bye)
    size += (gint) weir_rtcp_write_bye (out + size, WEBRTC_FEEDBACK_ROOM - (gsize) size, at->ssrc);
  g_signal_emit_by_name (
      self->srtp, "protect", out, (guint) size, (guint) WEBRTC_FEEDBACK_ROOM, &size);
  return (gsize) MAX (size, 0);
}

// ---- figures ----

guint64
webrtc_feedback_count_forged (void)
{
  return __atomic_load_n (&n_forged, __ATOMIC_RELAXED);
}

guint64 *
webrtc_feedback_ref_count (WebrtcFeedback *self)
{
  return g_atomic_rc_box_acquire (self->n_video);
}

void
webrtc_feedback_sample_video (WebrtcFeedback *self, ReaderVideo *sample)
{
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->places->len; i++) {
    if (((WebrtcPlace *) g_ptr_array_index (self->places, i))->is_video) {
      sample->lost = self->heard[i].last.lost;
      sample->highest = self->heard[i].last.highest_seq;
    }
  }
  g_mutex_unlock (&self->lock);
}

gboolean
webrtc_feedback_read_estimate (WebrtcFeedback *self, gint64 now, WeirEstimateView *view)
{
  gboolean is_known;

  g_signal_emit_by_name (self->srtp, "read-estimate", view, (guint64) now, &is_known);
  return is_known;
}

void
webrtc_feedback_sample (WebrtcFeedback *self, ReaderSample *sample)
{
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->places->len; i++) {
    const Heard *heard = &self->heard[i];

    sample->reports += heard->reports;
    sample->lost += (guint64) MAX (heard->last.lost, 0);
    sample->fraction_lost = MAX (sample->fraction_lost, heard->last.fraction_lost / 256.0);
  }
  g_mutex_unlock (&self->lock);
}
