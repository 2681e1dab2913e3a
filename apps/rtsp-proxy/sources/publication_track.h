// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A track of a publisher that sends RTP: the receive engine (ingest/engine.h) gives its packets to
// the publication.

#include "sources/engine_tracks.h"
#include "sources/publication.h"

// What the tracks of a publisher share.
typedef struct {
  Publication *publication; // NULL before it is claimed
  gint64 heard;             // atomic; when a packet came last, ns; 0: none
} PublicationTracks;

// The first member of its owner's structure.
typedef struct {
  EngineTrack media; // first
  PublicationTracks *shared;

  // Private: between enter and leave of the gate.
  PublishRun *run;
} PublicationTrack;

// Initialises it. `shared` must outlive it. Takes ownership of `caps`.
void publication_track_init (PublicationTrack *self, PublicationTracks *shared, GstCaps *caps);

// Waits until no packet of the track is on its way.
void publication_track_clear (PublicationTrack *self);

// Returns the settings of the track. Only the payload type of its caps is accepted: readers are
// told no other.
WeirTrackSettings publication_track_settings (PublicationTrack *self);

// Functions of WeirIngestOps, for `data` of PublicationTrack, all but `send`.
void publication_track_take (gpointer data, const WeirIngestPacket *packet);
#define PUBLICATION_TRACK_OPS(send)                                                                \
  { { publication_track_take, engine_track_reported, .dropped = engine_track_dropped,              \
        .repaired = engine_track_repaired },                                                       \
    engine_track_settled, send, engine_track_overflowed }
