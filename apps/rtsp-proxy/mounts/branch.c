// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mounts/branch.h"

#include "relay/relay_link.h"

static void
on_up (gpointer user)
{
  Branch *self = user;

  g_clear_pointer (&self->problem, g_free);
  self->callbacks->up (self, self->owner);
}

static void
on_down (gpointer user, const gchar *reason, guint retry_ms)
{
  Branch *self = user;

  g_free (self->problem);
  self->problem = g_strdup (reason);
  self->callbacks->down (self, reason, retry_ms, self->owner);
}

static void
on_connecting (gpointer user)
{
  Branch *self = user;

  self->callbacks->connecting (self, self->owner);
}

static void
on_failed_over (gpointer user)
{
  Branch *self = user;

  self->callbacks->failed_over (self, self->owner);
}

// Changed tracks are handled in on_begun().
static const NodeCallbacks node_callbacks = { on_up, on_down, on_connecting, NULL, on_failed_over };

static void
on_begun (gpointer user, RelayTracks tracks)
{
  Branch *self = user;

  self->changed = tracks == RELAY_TRACKS_CHANGED;
  self->callbacks->begun (self, self->owner);
}

static void
on_flows (gpointer user)
{
  Branch *self = user;

  self->callbacks->flows (self, self->owner);
}

static const RelaySourceCallbacks source_callbacks = { on_begun, on_flows };

Branch *
branch_new (Graph *graph, MountConfig *config, GPtrArray *stages, guint instance, Relay *relay,
    const BranchCallbacks *callbacks, gpointer owner)
{
  Branch *self = g_new0 (Branch, 1);

  self->owner = owner;
  self->callbacks = callbacks;
  self->key = graph_dup_key (config, stages, instance);
  self->node = graph_get (graph, config, stages, instance);
  self->source = relay_source_new (relay, &source_callbacks, self);
  return self;
}

void
branch_start (Branch *self)
{
  if (self->running)
    return;
  self->running = TRUE;
  relay_link (node_get_relay (self->node), self->source);
  node_use (self->node, &node_callbacks, self);
  // The node may run already, for other users.
  if (node_get_state (self->node) == NODE_UP)
    on_up (self);
}

void
branch_stop (Branch *self)
{
  if (!self->running)
    return;
  self->running = FALSE;
  relay_unlink (node_get_relay (self->node), self->source);
  node_unuse (self->node, self);
}

void
branch_free (Branch *self)
{
  branch_stop (self);
  relay_source_end (self->source);
  relay_source_unref (self->source);
  node_unref (self->node);
  g_free (self->key);
  g_free (self->problem);
  g_free (self);
}

gchar *
branch_dup_uri (const Branch *self)
{
  Node *node = self->node;

  while (node_get_input (node))
    node = node_get_input (node);
  for (guint i = 0; i < node_n_inlets (node); i++) {
    NodeInlet inlet = node_get_inlet (node, i);

    if (inlet.up)
      return g_strdup (inlet.uri);
  }
  return NULL;
}
