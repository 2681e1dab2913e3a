// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The layers of a publisher over WebRTC who sends the same pictures in several sizes at once
// (webrtc/simulcast.h). The publication of the mount has the best layer that flows; this object
// adds one for each further rank (sources/publication.h). All have the sound. Call from any thread.

#include "outlets/webrtc/sdp_layers.h"
#include "sources/publication_track.h"

typedef struct _WebrtcSimulcast WebrtcSimulcast;

typedef struct {
  PublicationTracks *shared;           // the publication of the mount
  const gchar *path, *peer, *identity; // of PublicationClaim
  GPtrArray *caps;                     // of the tracks
  guint track;                         // that of the pictures
  const gchar *const *rids;            // the names of the layers
  guint n_layers;
  // Asks the publisher for a keyframe of a layer.
  void (*ask_key) (gpointer owner, guint layer);
  gpointer owner;
  GDestroyNotify free_owner; // when ask_key() is called no more
} WebrtcSimulcastParts;

// Claims and begins the publications. `shared` must outlive webrtc_simulcast_end(). Takes the
// owner.
WebrtcSimulcast *webrtc_simulcast_new (const WebrtcSimulcastParts *parts);

// Ends the publications of further ranks with `reason`, and releases the object. No function below
// may run or come later.
void webrtc_simulcast_end (WebrtcSimulcast *self, const gchar *reason);

// Take the next packet of a layer, or of sound, from the receive engine, as the function of
// WeirIngestOps does.
void webrtc_simulcast_take (WebrtcSimulcast *self, guint layer, const WeirIngestPacket *packet);
void webrtc_simulcast_take_sound (
    WebrtcSimulcast *self, guint track, const WeirIngestPacket *packet);

// Likewise for the other functions, for a track of the publication and, if that has the pictures,
// one of its layers.
void webrtc_simulcast_report (
    WebrtcSimulcast *self, guint track, guint layer, const WeirNtpMap *map);
void webrtc_simulcast_settle (WebrtcSimulcast *self, guint track);
void webrtc_simulcast_count (WebrtcSimulcast *self, RelayCount what, guint n);

// Returns the layer that the mount has, or is to have; 0 before any has come.
guint webrtc_simulcast_get_layer (WebrtcSimulcast *self);

// Reports whether somebody takes the layer.
gboolean webrtc_simulcast_is_used (WebrtcSimulcast *self, guint layer);
