// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads a title of a swarm, which takes pieces from peers and from the origin. The readers of a
// title share its pieces. Call from any thread; only one may read at a time.
//
// Peers are strangers, so libtorrent runs in a worker process (swarm_remote.h), unless the
// configuration wants none.

#include "stores/swarm_reader_title.h"

typedef struct _SwarmReader SwarmReader;

// Chooses whether further readers use a worker process. Call from the main thread.
void swarm_reader_set_isolated (gboolean isolated);

// Starts the worker process before the first reader needs it. Call from the main thread.
void swarm_reader_prepare (void);

// Joins the swarm of the torrent. `rate` is the title's in bits a second, 0: unknown. A read for
// which nothing comes for `timeout_s` fails. Waits until the size is known. Returns NULL and sets
// an error of the domain G_IO_ERROR on failure: G_IO_ERROR_NOT_FOUND if the torrent has no such
// file.
SwarmReader *swarm_reader_new (
    const SwarmReaderTitle *title, guint64 rate, guint timeout_s, GError **error);

guint64 swarm_reader_get_size (const SwarmReader *self);

// Reads up to `length` bytes at `offset`, waits for them, and returns their number: less than
// `length` at the end of the title. Returns 0 and sets `error`, unless it is NULL, on failure.
gsize swarm_reader_read (
    SwarmReader *self, guint64 offset, guint8 *bytes, gsize length, GError **error);

// Ends reading for good. The title's pieces stay, and peers get them.
void swarm_reader_rest (SwarmReader *self);

// Sets the figures of the title, and those of this reader; `readers` is 0. Never waits for the
// worker process: the figures of a title that nobody reads may be 0.2 s old.
void swarm_reader_get_figures (SwarmReader *self, StoreSwarmTitle *figures);

void swarm_reader_free (SwarmReader *self);
