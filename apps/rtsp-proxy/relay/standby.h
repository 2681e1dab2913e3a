// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Keeps the packets of a standby source from its newest join point on, until the source takes over
// a relay. The source may stand by for hours: if its packets exceed the limits in bytes, packets or
// time, the owner clears the queue or lets the source take over. Not thread safe.

#include <gst/gst.h>

typedef struct _Standby Standby;

typedef struct {
  guint track;
  GstBuffer *packet;
  gint64 now;
  guint64 base;
  guint64 order; // set by standby_push()
} StandbyPacket;

// Makes an empty queue. `caps` holds a GstCaps of application/x-rtp for each track. The caller
// frees the result with standby_free().
Standby *standby_new (GPtrArray *caps);
void standby_free (Standby *self);

// Returns the track whose join points count.
guint standby_get_key_track (Standby *self);

// Adds a packet, and drops the packets before its frame if that is a join point. Takes ownership of
// `packet`.
void standby_push (Standby *self, guint track, GstBuffer *packet, gint64 now, guint64 base);

// Adds a packet and drops none: the source has taken over, and its packets are still to be sent.
// Takes ownership of `packet`.
void standby_append (Standby *self, guint track, GstBuffer *packet, gint64 now, guint64 base);

// Drops all packets.
void standby_clear (Standby *self);

// Returns the first packet of the join point, or NULL if there is none yet. The queue owns it.
const StandbyPacket *standby_get_join (Standby *self);

// Return the time at which the first and the newest join point was found, in ns, monotonic.
gint64 standby_get_since (Standby *self);
gint64 standby_get_joined (Standby *self);

// Reports whether the packets kept at `now` exceed a limit.
gboolean standby_is_full (Standby *self, gint64 now);

// Returns the oldest packet of the track with the join points, or NULL. The queue owns it.
const StandbyPacket *standby_peek (Standby *self);

// Adds the packets of the track with the join points to `packets` (of StandbyPacket), oldest first,
// if there is a join point. The caller gets references to the buffers.
void standby_ref_all (Standby *self, GArray *packets);

// Take the oldest packet of the track with the join points; the oldest of the other tracks; the
// oldest of all. Packets of the first begin at the join point; packets of other tracks may have
// arrived earlier, because their media may be later. Return FALSE if there is none. The caller owns
// the buffer.
gboolean standby_pop_key (Standby *self, StandbyPacket *packet);
gboolean standby_pop_other (Standby *self, StandbyPacket *packet);
gboolean standby_pop (Standby *self, StandbyPacket *packet);
