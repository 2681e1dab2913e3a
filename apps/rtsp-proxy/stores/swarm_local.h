// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads a title in this process, through a swarmsrc of its own: libtorrent, which talks to peers,
// runs here. The functions are as in swarm_reader.h.

#include "stores/swarm_reader_title.h"

typedef struct _SwarmLocal SwarmLocal;

SwarmLocal *swarm_local_new (
    const SwarmReaderTitle *title, guint64 rate, guint timeout_s, GError **error);
guint64 swarm_local_get_size (const SwarmLocal *self);
gsize swarm_local_read (
    SwarmLocal *self, guint64 offset, guint8 *bytes, gsize length, GError **error);
void swarm_local_rest (SwarmLocal *self);
void swarm_local_get_figures (SwarmLocal *self, StoreSwarmTitle *figures);
void swarm_local_free (SwarmLocal *self);
