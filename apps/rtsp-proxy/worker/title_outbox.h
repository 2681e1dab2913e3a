// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the tracks of a title in a worker process have for the proxy: each track has a socket, and
// keeps the messages for which its socket has no room, or which lie too far ahead of what the proxy
// has taken. So one thread can read all tracks of the file, although the proxy takes one track
// before another. The thread of title_loop.h sends what is kept.

#include "isolate/wire.h"

// The most that is kept of a track. Its reader then waits until half of it is sent, so it wakes for
// a second of the title.
#define TITLE_OUTBOX_TIME (2 * GST_SECOND)
#define TITLE_OUTBOX_BYTES (4 << 20)

// The most that is sent of a track beyond what the proxy has taken. A socket takes half a minute of
// a thin track; such a lead would be larger than the steps of time that a pacer accepts.
#define TITLE_OUTBOX_AHEAD GST_SECOND

typedef struct _TitleOutbox TitleOutbox;

TitleOutbox *title_outbox_new (void);

// Adds a track, with its socket, which is taken. Returns FALSE, and takes nothing, if the system
// cannot watch it.
gboolean title_outbox_add (TitleOutbox *self, guint track, gint socket);

// Sends a message, or keeps it. `at` is the time of its packets in the title (ns), or
// GST_CLOCK_TIME_NONE. Never waits. Returns FALSE if the track flushes, or the proxy has closed the
// title.
gboolean title_outbox_put (
    TitleOutbox *self, guint track, const WireMessage *message, GstClockTime at);

// Reports whether the most is kept of a track; whether nothing is.
gboolean title_outbox_is_full (TitleOutbox *self, guint track);
gboolean title_outbox_is_empty (TitleOutbox *self, guint track);

// Waits until half of what is kept of a track is sent, or it flushes.
void title_outbox_wait (TitleOutbox *self, guint track);

// Drops what is kept of a track, and puts nothing until the flush ends.
void title_outbox_flush (TitleOutbox *self, guint track, gboolean flushes);

// Ends all waits, for good.
void title_outbox_stop (TitleOutbox *self);

// Closes the sockets. Call after the elements of the tracks have stopped.
void title_outbox_free (TitleOutbox *self);
