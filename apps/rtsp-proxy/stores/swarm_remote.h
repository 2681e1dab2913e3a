// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads a title in the worker process of swarms, where libtorrent runs: a fault in it costs the
// titles of swarms a moment, and nobody else anything. A read that the end of the process cuts goes
// on in the next one. The functions are as in swarm_reader.h.

#include "stores/swarm_reader_title.h"

typedef struct _SwarmRemote SwarmRemote;

SwarmRemote *swarm_remote_new (
    const SwarmReaderTitle *title, guint64 rate, guint timeout_s, GError **error);
guint64 swarm_remote_get_size (const SwarmRemote *self);
gsize swarm_remote_read (
    SwarmRemote *self, guint64 offset, guint8 *bytes, gsize length, GError **error);
void swarm_remote_rest (SwarmRemote *self);
void swarm_remote_get_figures (SwarmRemote *self, StoreSwarmTitle *figures);
void swarm_remote_free (SwarmRemote *self);
