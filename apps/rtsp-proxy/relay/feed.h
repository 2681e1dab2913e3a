// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The first element of one track in a media of gst-rtsp-server: a live source element that sends
// the packets of a relay's track. It has no thread and no queue: packets pass in the upstream's
// thread.
//
// In PAUSED it sends caps, segment and a gap. The gap alone makes gst-rtsp-server treat the media
// as prepared. So a DESCRIBE never waits for a packet of each track (a sparse track may send none
// for minutes), and every stream has its segment before a PLAY can ask for it.

#include "relay/relay.h"
#include "relay/relay_sink.h"

typedef struct _Feed Feed;

// Makes a feed. `caps` are the application/x-rtp caps of the track. If `timed` is TRUE, the
// timestamp of a buffer is its time in the relay; if FALSE, its arrival on the pipeline's clock.
// (transfer floating)
Feed *feed_new (GstCaps *caps, gboolean timed);

// Begins to send a track's packets. From now on a GstForceKeyUnit event from downstream asks the
// relay for a keyframe. Packets that arrive before downstream has taken the gap, or while the media
// shuts down, are dropped.
void feed_attach (Feed *self, Relay *relay, guint track);

// Stops sending packets of `relay`.
void feed_detach (Feed *self, Relay *relay);

// Has the elements behind the feed drop what they have kept. Call while no relay feeds it.
void feed_flush (Feed *self);

// Reports whether the feed sends packets now. Call from any thread.
gboolean feed_is_open (Feed *self);
