// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/webrtc_place.h"

#include "readers/sink_sample.h"

WebrtcPlace *
webrtc_place_new (guint track, guint32 ssrc, gboolean is_video, GstElement *sink, gchar *token)
{
  WebrtcPlace *self = g_new0 (WebrtcPlace, 1);

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

  gst_object_unref (self->sink);
  g_free (self->token);
  g_free (self);
}

void
webrtc_place_enter (WebrtcPlace *self, guint16 port, WeirLayerSet layers)
{
  g_atomic_int_set (&self->port, port);
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
