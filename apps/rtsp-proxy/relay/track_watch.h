// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Tells on the main thread which tracks a relay has, to an owner that takes no packets.

#include "relay/relay.h"

typedef struct _TrackWatch TrackWatch;

// Calls `known` with the caps of all tracks (of GstCaps) when they are known, and each time that
// the relay begins anew, also with the same tracks. Call from any thread.
TrackWatch *track_watch_new (
    Relay *relay, void (*known) (gpointer owner, GPtrArray *caps), gpointer owner);

// `known` is not called any more. Call on the main thread.
void track_watch_free (TrackWatch *self);
