// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A track that a client announced: receives its packets and passes them to a publication.

#include <gst/rtsp/rtsp.h>

#include "sources/publication_track.h"

typedef struct _PublishedTrack PublishedTrack;

// What the tracks of a publisher share.
typedef struct {
  PublicationTracks media;
  WeirAddress own, peer; // of the connection
  // Sends RTCP on an interleaved channel; from any thread.
  void (*send) (gpointer owner, guint8 channel, const guint8 *rtcp, gsize len);
  gpointer owner;
} PublishedTracks;

// Makes a track. `shared` must outlive it. Takes ownership of `caps`; copies `control`, the
// track's a=control, which may be NULL.
PublishedTrack *published_track_new (
    PublishedTracks *shared, guint index, GstCaps *caps, const gchar *control);

// Waits until no packet of the track is on its way.
void published_track_free (gpointer self);

GstCaps *published_track_get_caps (PublishedTrack *self);
const gchar *published_track_get_control (PublishedTrack *self);

// Begins to receive by a transport of a SETUP, and completes that for the answer. A later SETUP
// replaces it. Returns FALSE if there are no sockets for it.
gboolean published_track_begin (PublishedTrack *self, GstRTSPTransport *transport);
gboolean published_track_has_begun (PublishedTrack *self);
gboolean published_track_is_interleaved (PublishedTrack *self);

// Sets the number of the track among those that have begun.
void published_track_set_index (PublishedTrack *self, guint index);

gboolean published_track_has_channel (PublishedTrack *self, guint8 channel);
void published_track_take (PublishedTrack *self, guint8 channel, guint8 *bytes, gsize len);

// Asks the publisher for a keyframe. Call from any thread, while the track lives.
void published_track_ask_key (PublishedTrack *self);
