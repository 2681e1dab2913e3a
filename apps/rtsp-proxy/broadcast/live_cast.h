// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Sends the tracks of a live mount on a multicast group: track N on the port + 2 N, with the
// numbers that all readers of the relay get. A client that comes gets the packets since the newest
// join point by live_cast_read(), and so a picture at once, until the group brings the next ones
// (the idea of RFC 6285).
//
// Reference-counted. Call from any thread; nothing here waits.

#include "broadcast/broadcast.h"
#include "relay/relay.h"

typedef struct _LiveCast LiveCast;

// Begins to send. Copies `config`, whose `groups`, `port`, `ttl` and `iface` count. `label` is for
// the log.
LiveCast *live_cast_new (const gchar *label, const BroadcastConfig *config, Relay *relay);
LiveCast *live_cast_ref (LiveCast *self);
void live_cast_unref (LiveCast *self);

// Ends sending.
void live_cast_stop (LiveCast *self);

// Describes the tracks and the group; see broadcast_describe(). Returns FALSE if the tracks are not
// known yet.
gboolean live_cast_describe (LiveCast *self, const gchar *source_address, gchar **sdp, gchar **etag,
    guint *valid_s, GError **error);

// Returns packets in the form of broadcast_read(); their numbers are their RTP sequence numbers.
// `ranges` has `length` bytes: "live" for the packets of each track from its newest join point on,
// or lines "TRACK FROM-TO" of sequence numbers, of which those are left out that the window does
// not hold. Returns NULL and sets `error` on failure: G_IO_ERROR_INVALID_ARGUMENT,
// G_IO_ERROR_INVALID_DATA (no such track), or G_IO_ERROR_BUSY (no tracks yet). (transfer full)
GBytes *live_cast_read (LiveCast *self, const gchar *ranges, gsize length, GError **error);

void live_cast_get_stats (LiveCast *self, BroadcastStats *stats);
