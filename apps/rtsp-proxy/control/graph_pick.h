// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Picks the nodes of a view of the graph that a client has asked for, or that a picture has room
// for. Nodes are taken with all that they take media from.

#include "control/graph_view.h"

typedef struct {
  guint drawn, all; // presentations
} GraphPick;

// Keeps what leads to presentations, and their readers.
void graph_pick_presentations (GPtrArray *view);

// Keeps at most `max` nodes: presentations with readers first, then others that run, in the order
// of the view. The first one is kept, however many nodes it has. A view of `max` nodes or less
// stays as it is.
GraphPick graph_pick_some (GPtrArray *view, guint max);
