// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What runs, as nodes that take media from one another.

#include "mounts/mount.h"

typedef struct {
  gchar *id;
  const gchar *kind; // "upstream", "stage", "presentation", "readers"
  gchar *label;
  gchar *state;    // or NULL
  GStrv params;    // name, value, name, value, ...
  GStrv notable;   // those that are not as they are by default, for people: "rate 600k"
  GPtrArray *from; // of gchar *: the ids of nodes that it takes from
} GraphNode;

// Takes over `id` and `label`.
GraphNode *graph_node_new (const gchar *kind, gchar *id, gchar *label);
void graph_node_free (gpointer node);

// A copy of the id.
void graph_node_take_from (GraphNode *self, const gchar *id);

// What runs, each node after those that it takes from, of the mounts (of Mount); to be freed with
// g_ptr_array_unref(). Main thread.
GPtrArray *graph_view_new (Graph *graph, GPtrArray *mounts);

// For Graphviz, without presentations that nothing runs for; to be freed. `nodes`: of GraphNode.
gchar *graph_to_dot (GPtrArray *nodes);
