// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The head of one track in a media of the RTSP library: a live source element whose src pad gives
// what a relay pushes into it. It has no thread and no queue of its own: packets pass in the thread
// of the upstream.
//
// As soon as it is PAUSED it sends its caps, its segment and a gap. The gap alone makes the library
// take the media for prepared, so that a DESCRIBE never waits for a packet of each track (sparse
// tracks have none for minutes), and every stream has its segment before a PLAY can ask for it.

#include "relay/relay.h"

typedef struct _Feed Feed;

// Returns a floating element. `caps`: application/x-rtp of the track. Timed: packets have the
// relay's time; else that of their arrival, by the pipeline's clock.
Feed *feed_new (GstCaps *caps, gboolean timed);

// It gets a track's packets and their time; GstForceKeyUnit, from behind it, asks the relay. What
// is pushed before its gap has gone through is dropped, and once the media is being taken down.
void feed_attach (Feed *self, Relay *relay, guint track);
void feed_detach (Feed *self, Relay *relay);

// Does what is pushed now go through?
gboolean feed_is_open (Feed *self);
