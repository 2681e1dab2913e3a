// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads a title through a swarmsrc of its own, which takes pieces from peers and from the origin.
// The readers of a title share its pieces. Call from any thread; only one may read at a time.

#include <gst/gst.h>

typedef struct _SwarmReader SwarmReader;

// Joins the swarm of the torrent that `torrent` is open on. `properties` has the names and values
// of swarmsrc's properties in turn; `rate` is the title's in bits a second, 0: unknown. `label` is
// the title's name in the log. A read for which nothing comes for `timeout_s` fails. Waits until
// the size is known. Returns NULL and sets an error of the domain G_IO_ERROR on failure.
SwarmReader *swarm_reader_new (int torrent, const gchar *const *properties, guint64 rate,
    const gchar *label, guint timeout_s, GError **error);

guint64 swarm_reader_get_size (const SwarmReader *self);

// Reads up to `length` bytes at `offset`, waits for them, and returns their number: less than
// `length` at the end of the title. Returns 0 and sets `error`, unless it is NULL, on failure.
gsize swarm_reader_read (
    SwarmReader *self, guint64 offset, guint8 *bytes, gsize length, GError **error);

// Ends reading. The title's pieces stay, and peers get them.
void swarm_reader_rest (SwarmReader *self);

// Returns the statistics of the swarmsrc. (transfer full)
GstStructure *swarm_reader_dup_stats (SwarmReader *self);

void swarm_reader_free (SwarmReader *self);
