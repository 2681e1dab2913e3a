// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/published_track.h"

#include "base/clock.h"
#include "ingest/udp.h"
#include "sources/endpoint.h"

struct _PublishedTrack {
  PublicationTrack media; // first
  PublishedTracks *shared;
  gchar *control;
  guint number; // in the description
  gboolean interleaved;
  guint8 channels[2]; // of RTP and RTCP
};

// From any thread of the engine, or from the client's.
static void
on_send (gpointer data, const guint8 *rtcp, gsize len)
{
  PublishedTrack *self = data;

  self->shared->send (self->shared->owner, self->channels[1], rtcp, len);
}

static const WeirIngestOps track_ops = PUBLICATION_TRACK_OPS (on_send);

// ---- transports ----

static gboolean
open_sockets (PublishedTrack *self, GstRTSPTransport *transport, WeirIngestSockets *out)
{
  gint fds[2], port = weir_udp_open_pair (&self->shared->own, 0, ENGINE_TRACK_BUFFER, TRUE, fds);

  if (port < 0)
    return FALSE;
  *out = (WeirIngestSockets) { fds[0], fds[1] };
  transport->server_port.min = port;
  transport->server_port.max = port + 1;
  return TRUE;
}

static void
choose_channels (PublishedTrack *self, GstRTSPTransport *transport)
{
  if (transport->interleaved.min < 0) {
    transport->interleaved.min = (gint) (2 * self->number);
    transport->interleaved.max = transport->interleaved.min + 1;
  }
  self->channels[0] = (guint8) transport->interleaved.min;
  self->channels[1] = (guint8) transport->interleaved.max;
}

static void
end (PublishedTrack *self)
{
  UdpStats drops = { 0 };

  engine_track_remove (&self->media.media, &drops);
}

gboolean
published_track_begin (PublishedTrack *self, GstRTSPTransport *transport)
{
  WeirTrackSettings settings = publication_track_settings (&self->media);
  WeirIngestSockets sockets = WEIR_INGEST_NO_SOCKETS;

  end (self);
  self->interleaved = transport->lower_transport == GST_RTSP_LOWER_TRANS_TCP;
  if (self->interleaved) {
    choose_channels (self, transport);
    engine_track_split_long (&self->media.media);
  } else {
    if (!open_sockets (self, transport, &sockets))
      return FALSE;
    settings.host_known = TRUE;
    settings.host = self->shared->peer;
    settings.rtcp_to_known = TRUE;
    settings.rtcp_to = endpoint_with_port (&self->shared->peer, transport->client_port.max);
  }
  return engine_track_add (&self->media.media, &settings, sockets, &track_ops) == 0;
}

gboolean
published_track_has_begun (PublishedTrack *self)
{
  return self->media.media.in != NULL;
}

gboolean
published_track_is_interleaved (PublishedTrack *self)
{
  return self->interleaved;
}

void
published_track_set_index (PublishedTrack *self, guint index)
{
  self->media.media.index = index;
}

gboolean
published_track_has_channel (PublishedTrack *self, guint8 channel)
{
  return self->media.media.in && self->interleaved
         && (channel == self->channels[0] || channel == self->channels[1]);
}

void
published_track_take (PublishedTrack *self, guint8 channel, guint8 *bytes, gsize len)
{
  weir_ingest_push (self->media.media.in, channel == self->channels[1], bytes, len, clock_now ());
}

void
published_track_ask_key (PublishedTrack *self)
{
  weir_ingest_ask_key (self->media.media.in);
}

// ---- construction ----

GstCaps *
published_track_get_caps (PublishedTrack *self)
{
  return self->media.media.caps;
}

const gchar *
published_track_get_control (PublishedTrack *self)
{
  return self->control;
}

PublishedTrack *
published_track_new (PublishedTracks *shared, guint index, GstCaps *caps, const gchar *control)
{
  PublishedTrack *self = g_new0 (PublishedTrack, 1);

  self->shared = shared;
  publication_track_init (&self->media, &shared->media, caps);
  self->number = index;
  self->control = g_strdup (control);
  return self;
}

void
published_track_free (gpointer data)
{
  PublishedTrack *self = data;

  publication_track_clear (&self->media);
  g_free (self->control);
  g_free (self);
}
