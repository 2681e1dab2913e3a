// SPDX-License-Identifier: LGPL-2.1-or-later

// The nodes whose raw frames a stage with several inputs takes.

#include "graph/node_private.h"

// How long the stage waits for the first input, whose tracks pass, in ms.
#define ALONE_MS 2000

static const NodeCallbacks side_callbacks = { NULL };

static void
use_sides (Node *self, gboolean on)
{
  if (!self->sides || self->uses_sides == on)
    return;
  self->uses_sides = on;
  for (guint i = 0; i < self->sides->len; i++) {
    if (on)
      node_use (g_ptr_array_index (self->sides, i), &side_callbacks, self);
    else
      node_unuse (g_ptr_array_index (self->sides, i), self);
  }
}

// In a worker process, the decoders follow into that of the new run.
static gboolean
start_sides (gpointer data)
{
  Node *self = data;

  self->sides_start = NULL;
  if (node_is_isolated (self))
    use_sides (self, FALSE);
  use_sides (self, TRUE);
  return G_SOURCE_REMOVE;
}

void
node_start_sides (Node *self)
{
  if (self->sides && !self->sides_start)
    self->sides_start = timer_add (0, start_sides, self);
}

// The first input does not come. The stage goes on without it, as if it had no tracks.
static gboolean
start_alone (gpointer data)
{
  Node *self = data;

  self->alone = NULL;
  self->is_alone = relay_n_tracks (self->input->relay) == 0;
  inlet_run (node_inlet (self, 0), TRUE);
  return G_SOURCE_REMOVE;
}

void
node_await_first (Node *self)
{
  if (self->sides)
    self->alone = timer_add (ALONE_MS, start_alone, self);
}

void
node_take_first (Node *self)
{
  g_clear_pointer (&self->alone, timer_remove);
  if (self->is_alone) { // now there are tracks that pass
    self->is_alone = FALSE;
    inlet_run (node_inlet (self, 0), FALSE);
  }
}

void
node_stop_sides (Node *self)
{
  g_clear_pointer (&self->alone, timer_remove);
  self->is_alone = FALSE;
  g_clear_pointer (&self->sides_start, timer_remove);
  use_sides (self, FALSE);
}

void
node_add_side (Node *self, Node *side)
{
  if (!self->sides)
    self->sides = g_ptr_array_new_with_free_func ((GDestroyNotify) node_unref);
  g_ptr_array_add (self->sides, node_ref (side));
}

guint
node_n_sides (Node *self)
{
  return self->sides ? self->sides->len : 0;
}

Node *
node_get_side (Node *self, guint i)
{
  return g_ptr_array_index (self->sides, i);
}
