// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Stands between a relay and a sink that writes the tracks into one stream. At the start of a run
// it holds packets, for 2 s at most, until it is known how the tracks relate to each other; then
// their times are in sync. A difference that shows later is made up for at 1 ms a second; one of
// more than 40 ms at once. Time never goes back: packets of the overlap are dropped.

#include "relay/relay.h"

typedef struct _SyncedSink SyncedSink;

// Adds the sink as relay_add_sink() does, with `start` 0. Its mapped() is not called. `label` is
// for the log.
SyncedSink *synced_sink_add (
    Relay *relay, const gchar *label, const RelaySink *functions, gpointer sink, guint32 tracks);

// Removes the sink as relay_remove_sink() does, if the relay has not, and releases `self`.
void synced_sink_remove (SyncedSink *self);
