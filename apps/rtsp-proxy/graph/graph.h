// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The nodes that there are, by what they do: whoever asks for the same chain of stages, or for one
// that begins the same, gets the same nodes. Main thread only.

#include "graph/node.h"

typedef struct _Graph Graph;

Graph *graph_new (void);
void graph_free (Graph *self); // when all nodes are gone

// What the chain of these stages (of Stage) ends in; the first is the one that pulls the mount's
// upstreams. A reference.
// `instance`: chains of different ones share nothing.
Node *graph_get (Graph *self, MountConfig *config, const GPtrArray *stages, guint instance);

// What graph_get() would give the same node for. To be freed; it may hold passwords.
gchar *graph_dup_key (const MountConfig *config, const GPtrArray *stages, guint instance);

// All, in the order in which they were made; to be freed with g_ptr_array_unref().
GPtrArray *graph_dup_nodes (Graph *self);
