// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A view of the running graph for the API: upstreams, stages, presentations and readers.

#include "mounts/mount.h"

typedef struct {
  gchar *id;
  const gchar *kind; // "upstream", "stage", "presentation", "readers"
  gchar *label;
  gchar *state;    // or NULL
  GStrv params;    // name, value, name, value, ...
  GStrv notable;   // parameters that differ from their default, as text: "rate 600k"
  GPtrArray *from; // of gchar *: ids of the nodes that this node takes media from
} GraphNode;

// Takes ownership of `id` and `label`.
GraphNode *graph_node_new (const gchar *kind, gchar *id, gchar *label);
void graph_node_free (gpointer node);

// Adds `id` to `from`. Copies `id`.
void graph_node_take_from (GraphNode *self, const gchar *id);

// Returns a view, an array of GraphNode, of the graph and of the presentations of `mounts` (of
// Mount). Each node comes after the nodes that it takes media from. Call from the main thread only.
// (transfer full)
GPtrArray *graph_view_new (Graph *graph, GPtrArray *mounts);

// Returns the nodes (of GraphNode) as text for Graphviz, without presentations that take no media.
// `title` stands above the picture; NULL: none. (transfer full)
gchar *graph_to_dot (GPtrArray *nodes, const gchar *title);
