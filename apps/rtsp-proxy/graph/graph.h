// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The graph: all nodes, by key. Equal chains of stages share all their nodes, and chains with a
// common beginning share the nodes of that beginning. Call from the main thread only.

#include "graph/node.h"

typedef struct _Graph Graph;

Graph *graph_new (void);
// Call after all nodes were freed.
void graph_free (Graph *self);

// Returns the last node of the chain of `stages` (of Stage), and makes the nodes that are missing.
// The first stage pulls the mount's upstreams. Chains with different `instance` share no nodes. A
// stage with several inputs has a node beside it for each, which decodes it, and if it is not the
// first, one before that, which reads the mount. (transfer full)
Node *graph_get (Graph *self, MountConfig *config, const GPtrArray *stages, guint instance);

// Returns a key that is equal for calls of graph_get() that return the same node. It may contain
// passwords. (transfer full)
gchar *graph_dup_key (const MountConfig *config, const GPtrArray *stages, guint instance);

// Returns references to all nodes, oldest first. (transfer full)
GPtrArray *graph_dup_nodes (Graph *self);
