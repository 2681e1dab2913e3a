// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Sends packets on one multicast group: a fanoutsink for each track, with the group as its only
// reader. For one thread at a time.

#include <gst/gst.h>

#include "broadcast/multicast_sink.h"
#include "broadcast/packet_file.h"

typedef struct _Channel Channel;

// Opens the sockets of a channel for the tracks of `file`. Takes some ms. Returns NULL and sets
// `error` on failure.
Channel *channel_new (const MulticastAddress *to, const PacketFile *file, GError **error);

// Sends the packets of a frame: the records in `length` bytes at `offset` of `block`, which is
// referenced as long as necessary. Returns the number of packets, and adds their bytes to `*bytes`.
guint channel_send (Channel *self, GBytes *block, gsize offset, gsize length, guint64 *bytes);

// Takes some ms. NULL is fine.
void channel_free (Channel *self);
