// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Keeps the packets of a standby source from its newest join point on, until the source takes over
// a relay. Not thread safe.

#include <gst/gst.h>

typedef struct _Standby Standby;

typedef struct {
  guint track;
  GstBuffer *packet;
  gint64 now;
  guint64 base;
} StandbyPacket;

// `caps` holds a GstCaps of application/x-rtp for each track.
Standby *standby_new (GPtrArray *caps);
void standby_free (Standby *self);

// Adds a packet. Takes ownership of `packet`. Returns TRUE once there is a join point.
gboolean standby_push (Standby *self, guint track, GstBuffer *packet, gint64 now, guint64 base);

// Returns the first packet of the join point, or NULL if there is none yet. The queue owns it.
const StandbyPacket *standby_get_join (Standby *self);

// Return when the first join point was found, when the newest was found (both ns, monotonic), and
// whether the packets kept exceed the limit.
gint64 standby_get_since (Standby *self);
gint64 standby_get_joined (Standby *self);
gboolean standby_is_full (Standby *self);

// Takes the next packet from the queue, in order of arrival. Packets of the key track begin at the
// join point; those of other tracks may have arrived before it, because their media may be later.
// Returns FALSE if the queue is empty. The caller owns the buffer.
gboolean standby_pop (Standby *self, StandbyPacket *packet);
