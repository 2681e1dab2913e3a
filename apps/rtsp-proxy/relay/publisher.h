// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Publishes a track of a relay as a named window, an intervalcache with a channel, for stages in
// other pipelines. Packets have the relay's time. Main thread only.

#include "relay/relay.h"

typedef struct _Publisher Publisher;

// NULL if the element is missing.
Publisher *publisher_new (Relay *relay, guint track, const gchar *channel);
Publisher *publisher_ref (Publisher *self);

// TRUE: it was the last reference.
gboolean publisher_unref (Publisher *self);
