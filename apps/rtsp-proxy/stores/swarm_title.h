// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A title of a swarm that this process takes part in: its size and rate, and who reads it. It is
// in the swarm as long as it exists. Reference-counted; call from any thread.

#include "stores/store.h"
#include "stores/swarm_reader.h"

typedef struct _SwarmTitle SwarmTitle;

// Joins the swarm of `torrent`, which is open on the file `name`.torrent whose content has the
// checksum `id`. Takes ownership of `torrent`. Reads what is needed to find the rate. Returns NULL
// and sets an error of the domain G_IO_ERROR on failure.
SwarmTitle *swarm_title_new (int torrent, const gchar *name, const gchar *id,
    const gchar *const *properties, GError **error);
SwarmTitle *swarm_title_ref (SwarmTitle *self);
void swarm_title_unref (SwarmTitle *self);

const gchar *swarm_title_get_id (const SwarmTitle *self);

// The rate is in bits a second, 0: unknown.
guint64 swarm_title_get_rate (const SwarmTitle *self);

// Adds a reader, or returns NULL and sets an error of the domain G_IO_ERROR. Its owner gives it
// back to swarm_title_remove_reader().
SwarmReader *swarm_title_add_reader (SwarmTitle *self, GError **error);
void swarm_title_remove_reader (SwarmTitle *self, SwarmReader *reader);

// Returns how many read the title, and when the last one left, in us of g_get_monotonic_time().
guint swarm_title_count_readers (SwarmTitle *self, gint64 *left_us);

const gchar *swarm_title_get_name (const SwarmTitle *self);

// Sets the figures.
void swarm_title_get_figures (SwarmTitle *self, StoreSwarmTitle *figures);
