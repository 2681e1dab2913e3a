// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/webrtc_place.h"

#include "readers/sink_sample.h"

WebrtcPlace *
webrtc_place_new (guint track, guint32 ssrc, gboolean is_video, GstElement *sink, gchar *token)
{
  WebrtcPlace *self = g_new0 (WebrtcPlace, 1);

  g_mutex_init (&self->lock);
  self->track = track;
  self->ssrc = ssrc;
  self->is_video = is_video;
  self->sink = gst_object_ref (sink);
  self->token = token;
  return self;
}

void
webrtc_place_free (gpointer data)
{
  WebrtcPlace *self = data;

  g_clear_pointer (&self->other, webrtc_stream_unref);
  g_mutex_clear (&self->lock);
  gst_object_unref (self->sink);
  g_free (self->token);
  g_free (self);
}

// Takes the reference.
static void
set_other (WebrtcPlace *self, WebrtcStream *other, gboolean is_guest)
{
  WebrtcStream *before;

  g_mutex_lock (&self->lock);
  before = self->other;
  self->other = other;
  self->is_guest = is_guest;
  g_mutex_unlock (&self->lock);
  g_clear_pointer (&before, webrtc_stream_unref);
}

void
webrtc_place_enter (WebrtcPlace *self, guint16 port, WeirLayerSet layers)
{
  g_atomic_int_set (&self->port, port);
  set_other (self, NULL, FALSE); // it begins in its own sink
  if (self->is_video)
    webrtc_place_set_layers (self, layers);
  g_signal_emit_by_name (self->sink, "add", self->token, (gint) port);
}

void
webrtc_place_leave (WebrtcPlace *self)
{
  g_signal_emit_by_name (self->sink, "remove", self->token, g_atomic_int_get (&self->port));
}

gboolean
webrtc_place_set_layers (WebrtcPlace *self, WeirLayerSet layers)
{
  return sink_set_layers (self->sink, self->token, g_atomic_int_get (&self->port), layers);
}

gboolean
webrtc_place_restrict (WebrtcPlace *self, guint state)
{
  return sink_restrict (self->sink, self->token, g_atomic_int_get (&self->port), state);
}

GstStructure *
webrtc_place_dup_stats (WebrtcPlace *self)
{
  GstStructure *stats = NULL;

  g_signal_emit_by_name (
      self->sink, "get-stats", self->token, g_atomic_int_get (&self->port), &stats);
  return stats;
}

void
webrtc_place_resend (WebrtcPlace *self, const guint16 *seqs, gsize n, gint64 round_trip)
{
  GBytes *bytes = g_bytes_new (seqs, n * sizeof *seqs);
  guint resent;

  g_signal_emit_by_name (self->sink, "resend", self->token, g_atomic_int_get (&self->port), bytes,
      (guint64) round_trip, &resent);
  g_bytes_unref (bytes);
}

gboolean
webrtc_place_probe (WebrtcPlace *self, guint64 bits, guint duration)
{
  gboolean probes;

  g_signal_emit_by_name (
      self->sink, "probe", self->token, g_atomic_int_get (&self->port), bits, duration, &probes);
  return probes;
}

void
webrtc_place_rejoin (WebrtcPlace *self)
{
  gboolean joins;

  g_signal_emit_by_name (self->sink, "rejoin", self->token, g_atomic_int_get (&self->port), &joins);
}

// ---- renditions ----

// Returns the stream of the video of a rendition, whose sink has the sockets of the place's own
// sink. (transfer full)
static WebrtcStream *
get_other (WebrtcPlace *self, const WebrtcTrack *own, Presentation *rendition)
{
  GSocket *v4 = NULL, *v6 = NULL;
  GError *error = NULL;
  WebrtcStream *other = NULL;

  g_mutex_lock (&self->lock);
  if (self->other && webrtc_stream_is_of (self->other, rendition)
      && !webrtc_stream_has_ended (self->other))
    other = webrtc_stream_ref (self->other);
  g_mutex_unlock (&self->lock);
  if (other)
    return other;
  g_object_get (self->sink, "socket", &v4, "socket-v6", &v6, NULL);
  other = webrtc_stream_get (rendition, own->codec, v4, v6, &error);
  g_clear_object (&v4);
  g_clear_object (&v6);
  g_clear_error (&error);
  return other;
}

WebrtcStream *
webrtc_place_dup_guest_of (WebrtcPlace *self)
{
  WebrtcStream *other;

  g_mutex_lock (&self->lock);
  other = self->is_guest ? webrtc_stream_ref (self->other) : NULL;
  g_mutex_unlock (&self->lock);
  return other;
}

static ReaderSplice
go (WebrtcPlace *self, WebrtcStream *to, guint track, guint32 ahead, gint64 now)
{
  gboolean done = FALSE;

  g_signal_emit_by_name (self->sink, "splice", self->token, g_atomic_int_get (&self->port),
      webrtc_stream_get_track (to, track)->sink, ahead, &done);
  if (!done)
    webrtc_stream_ask_key (to, track, now);
  return done ? READER_SPLICE_DONE : READER_SPLICE_LATER;
}

// Call with a reference to `other`, which is taken.
static ReaderSplice
go_to_other (WebrtcPlace *self, WebrtcStream *own, WebrtcStream *other, gint64 now)
{
  ReaderSplice result = READER_SPLICE_NEVER;
  guint32 ahead;

  if (webrtc_stream_get_track (other, 0)->is_video
      && webrtc_stream_get_ahead (own, self->track, other, 0, &ahead))
    result = go (self, other, 0, ahead, now);
  if (result == READER_SPLICE_NEVER)
    webrtc_stream_unref (other);
  else
    set_other (self, other, result == READER_SPLICE_DONE);
  return result;
}

ReaderSplice
webrtc_place_splice (WebrtcPlace *self, WebrtcStream *own, Presentation *rendition, gint64 now)
{
  WebrtcStream *other = NULL;
  ReaderSplice result;

  if (rendition) {
    other = get_other (self, webrtc_stream_get_track (own, self->track), rendition);
    return other ? go_to_other (self, own, other, now) : READER_SPLICE_NEVER;
  }
  result = go (self, own, self->track, 0, now);
  if (result == READER_SPLICE_DONE)
    set_other (self, NULL, FALSE);
  return result;
}
