// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The place of a reader of a title in the worker process of swarms. When that process ends, the
// reader connects again; one that rests is connected again by itself. A process that ends soon
// again is started later each time. Call from any thread, unless the function says otherwise.

#include "stores/swarm_reader_title.h"

typedef struct _SwarmLink SwarmLink;

// The fields of `title` outlive the link.
SwarmLink *swarm_link_new (const SwarmReaderTitle *title, guint64 rate, guint timeout_s);

// Asks for a place in the process, which is started if necessary. Returns the socket on which the
// worker answers (swarm_wire.h), and closes the one before. The link owns it. When the worker does
// not come or ends, the socket is at its end. Returns -1 with errno if the system gives no socket.
// Not for a link that rests.
int swarm_link_connect (SwarmLink *self);

// Lets the link rest, and tells the worker: the reader does not use the socket any more.
void swarm_link_rest (SwarmLink *self);

// Kills the worker, which has made a mistake. `why` is static, and completes "worker 1 ".
void swarm_link_blame (SwarmLink *self, const gchar *why);

// Returns why the last worker ended, or NULL. (transfer full)
gchar *swarm_link_dup_reason (SwarmLink *self);

// Sets the sums over all workers that the link had, and what the present one has now.
void swarm_link_get_figures (SwarmLink *self, StoreSwarmTitle *figures);

void swarm_link_free (SwarmLink *self);
