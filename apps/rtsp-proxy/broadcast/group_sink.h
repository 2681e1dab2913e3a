// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A fanoutsink that sends one track to a multicast group. Reference-counted. Call from any thread;
// packets come from one thread at a time.

#include "broadcast/broadcast.h"
#include "relay/relay.h"

typedef struct _GroupSink GroupSink;

// Begins to send track `track` of `relay`, with these caps, to the group of `config`, port +
// 2 `track`. The relay is asked for keyframes; its packets come by group_sink_push(). `label` is
// for the log. Returns NULL and sets `error` on failure.
GroupSink *group_sink_new (const gchar *label, const BroadcastConfig *config, Relay *relay,
    guint track, GstCaps *caps, GError **error);
GroupSink *group_sink_ref (GroupSink *self);
void group_sink_unref (GroupSink *self); // the last call ends sending

// Sends a packet. Takes ownership of the buffer.
void group_sink_push (GroupSink *self, GstBuffer *packet);

// Returns up to `n` packets from the sequence number `from` on, or from the newest join point with
// -1. (transfer full)
GstBufferList *group_sink_get_packets (GroupSink *self, gint from, guint n);

// Adds what was sent to the counters.
void group_sink_add_sent (GroupSink *self, guint64 *packets, guint64 *bytes);
