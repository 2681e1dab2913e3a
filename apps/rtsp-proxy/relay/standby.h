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

// Makes an empty queue. `caps` holds a GstCaps of application/x-rtp for each track. The caller
// frees the result with standby_free().
Standby *standby_new (GPtrArray *caps);
void standby_free (Standby *self);

// Adds a packet. Takes ownership of `packet`. Returns TRUE once there is a join point.
gboolean standby_push (Standby *self, guint track, GstBuffer *packet, gint64 now, guint64 base);

// Returns the first packet of the join point, or NULL if there is none yet. The queue owns it.
const StandbyPacket *standby_get_join (Standby *self);

// Return the time at which the first and the newest join point was found, in ns, monotonic.
gint64 standby_get_since (Standby *self);
gint64 standby_get_joined (Standby *self);

// Reports whether the packets kept exceed the limit.
gboolean standby_is_full (Standby *self);

// Takes the next packet from the queue, in order of arrival. Packets of the track with the join
// point begin there; packets of other tracks may have arrived earlier, because their media may be
// later. Returns FALSE if the queue is empty. The caller owns the buffer.
gboolean standby_pop (Standby *self, StandbyPacket *packet);
