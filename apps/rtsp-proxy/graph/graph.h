// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// All nodes, by key. Equal chains of stages share all their nodes; chains with a common beginning
// share the nodes of the beginning. Call from the main thread only.

#include "graph/node.h"

typedef struct _Graph Graph;

Graph *graph_new (void);
// Call when all nodes are gone.
void graph_free (Graph *self);

// Returns the last node of the chain of `stages` (of Stage); the first stage is the one that pulls
// the mount's upstreams. Chains with different `instance` share no nodes. (transfer full)
Node *graph_get (Graph *self, MountConfig *config, const GPtrArray *stages, guint instance);

// Returns a key that is equal for calls of graph_get() that return the same node. It may contain
// passwords. (transfer full)
gchar *graph_dup_key (const MountConfig *config, const GPtrArray *stages, guint instance);

// Returns references to all nodes, in the order in which they were made. (transfer full)
GPtrArray *graph_dup_nodes (Graph *self);
