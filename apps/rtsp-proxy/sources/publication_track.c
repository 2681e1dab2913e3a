// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/publication_track.h"

// ---- callbacks of the engine, from any of its threads, or from the publisher's ----

// Finds the upstream that takes the track's packets until leave(). The callbacks of a track never
// run in two threads at once.
static gboolean
enter (EngineTrack *track)
{
  PublicationTrack *self = (PublicationTrack *) track;

  self->run = publication_enter (self->shared->publication);
  if (self->run)
    track->context = publication_context (self->run);
  return self->run != NULL;
}

static void
leave (EngineTrack *track)
{
  publication_leave (((PublicationTrack *) track)->run);
}

static const EngineTrackGate gate = { enter, leave };

void
publication_track_take (gpointer data, const WeirIngestPacket *packet)
{
  PublicationTrack *self = data;
  gboolean takes = enter (&self->media);

  __atomic_store_n (&self->shared->heard, packet->arrival_ns, __ATOMIC_RELAXED);
  publication_hear (self->shared->publication, packet->arrival_ns);
  if (!takes)
    return;
  engine_track_push (&self->media, packet, RELAY_NO_BASE);
  leave (&self->media);
}

// ---- the life of a track ----

void
publication_track_init (PublicationTrack *self, PublicationTracks *shared, GstCaps *caps)
{
  self->shared = shared;
  self->media.gate = &gate;
  self->media.caps = caps;
}

void
publication_track_clear (PublicationTrack *self)
{
  UdpStats drops = { 0 };

  engine_track_remove (&self->media, &drops);
  gst_caps_unref (self->media.caps);
}

WeirTrackSettings
publication_track_settings (PublicationTrack *self)
{
  WeirTrackSettings settings = engine_track_settings (self->media.caps);
  gint payload = 0;

  gst_structure_get_int (gst_caps_get_structure (self->media.caps, 0), "payload", &payload);
  settings.payload_types[(payload & 127) / 64] = G_GUINT64_CONSTANT (1) << (payload & 63);
  return settings;
}
