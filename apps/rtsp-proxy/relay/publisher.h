// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Publishes a track of a relay as a named window (an intervalcache with a channel), for stages in
// other pipelines. Timestamps are the relay's time. Call from the main thread only.

#include "relay/relay.h"

typedef struct _Publisher Publisher;

// Publishes a track as the channel `channel`. Returns NULL if intervalcache is not installed or the
// track does not exist. The caller owns the reference.
Publisher *publisher_new (Relay *relay, guint track, const gchar *channel);
Publisher *publisher_ref (Publisher *self);

// Releases a reference. Returns TRUE if it was the last one: the channel is closed.
gboolean publisher_unref (Publisher *self);
