// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A source that waits to take a relay over: what it has brought from its newest join point on. Not
// thread safe.

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

// A packet came; takes the buffer. TRUE once there is a join point.
gboolean standby_push (Standby *self, guint track, GstBuffer *packet, gint64 now, guint64 base);

// The first packet of the join point, NULL if there is none yet: what follows it is in the queue.
const StandbyPacket *standby_get_join (Standby *self);

// When the first join point was found, and the newest; and whether more is held than should be.
gint64 standby_get_since (Standby *self);
gint64 standby_get_joined (Standby *self);
gboolean standby_is_full (Standby *self);

// The next packet in the order of arrival, from the join point on; those of other tracks may be
// from before it, as their media may be of after it. FALSE: there is none. The buffer is the
// caller's.
gboolean standby_pop (Standby *self, StandbyPacket *packet);
