// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Sends the tracks of a live mount on a multicast group: track N on the port + 2 N, with the
// numbers that all readers of the relay get. A client that comes gets the packets since the newest
// join point by live_broadcast_read(), and so a picture at once, until the group brings the next
// ones (the idea of RFC 6285).
//
// Reference-counted. Call from any thread; nothing here waits.

#include "broadcast/broadcast.h"
#include "relay/relay.h"

typedef struct _LiveBroadcast LiveBroadcast;

// Begins to send. Copies `config`, whose `groups`, `port`, `ttl` and `iface` count. `label` is for
// the log.
LiveBroadcast *live_broadcast_new (const gchar *label, const BroadcastConfig *config, Relay *relay);
LiveBroadcast *live_broadcast_ref (LiveBroadcast *self);
void live_broadcast_unref (LiveBroadcast *self);

// Ends sending.
void live_broadcast_stop (LiveBroadcast *self);

// Describes the tracks and the group; see broadcast_describe(). Returns FALSE if the tracks are not
// known yet.
gboolean live_broadcast_describe (LiveBroadcast *self, const gchar *source_address, gchar **sdp,
    gchar **etag, guint *valid_s, GError **error);

// Returns packets in the form of broadcast_read(); their numbers are their RTP sequence numbers.
// `ranges` has `length` bytes: "live" for the packets of each track from its newest join point on,
// or lines "TRACK FROM-TO" of sequence numbers, of which those are left out that the window does
// not hold. Returns NULL and sets `error` on failure: G_IO_ERROR_INVALID_ARGUMENT,
// G_IO_ERROR_INVALID_DATA (no such track), or G_IO_ERROR_BUSY (no tracks yet). (transfer full)
GBytes *live_broadcast_read (
    LiveBroadcast *self, const gchar *ranges, gsize length, GError **error);

void live_broadcast_get_stats (LiveBroadcast *self, BroadcastStats *stats);
