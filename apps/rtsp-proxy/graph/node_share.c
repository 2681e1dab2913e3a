// SPDX-License-Identifier: LGPL-2.1-or-later

// The stream of a node as other members of a cluster have it: two inlets more, of which one reads
// a member while this member does not run the upstreams itself.

#include "graph/node_private.h"
#include "sources/rtsp_client.h"

gboolean
node_is_shared (const Node *self)
{
  return self->share.inlets[0] != NULL;
}

// Stages and sessions of a stored title are part of what a mount serves, which others would have
// them apply again.
static gboolean
is_for_sharing (const MountConfig *config)
{
  return sharing_is_expected () && config->pulls->len > 0 && config->pipeline->len == 0
         && config->source_steps->len == 0 && !(config->inputs && *config->inputs)
         && config->interval_ms == 0 && sharing_is_for (g_ptr_array_index (config->pulls, 0));
}

void
node_add_members (Node *self)
{
  if (!is_for_sharing (self->config))
    return;
  for (guint i = 0; i < SHARING_SLOTS; i++) {
    PullConfig *config = &self->share.configs[i];

    *config = (PullConfig) { .uri = g_strdup ("rtsp:"),
      .light = &rtsp_client_light,
      .client = PULL_LIGHT,
      .parser = PULL_PASSES,
      .transport = PULL_TCP };
    self->share.inlets[i] = node_add_inlet (self, config, NULL);
  }
}

void
node_free_members (Node *self)
{
  for (guint i = 0; i < SHARING_SLOTS; i++)
    pull_config_clear (&self->share.configs[i]);
}

// ---- the route ----

static void
on_routed (gpointer data)
{
  Node *self = data;

  if (!self->share.use)
    return; // it is on its way
  node_ref (self);
  node_choose (self);
  node_unref (self);
}

void
node_start_sharing (Node *self)
{
  gpointer data;
  const Sharing *sharing = sharing_get (&data);

  if (!node_is_shared (self) || !sharing)
    return;
  self->share.use = sharing->use (data, self->config->path,
      pull_config_awaits (g_ptr_array_index (self->config->pulls, 0)), on_routed, self);
  self->share.sharing = sharing;
  self->share.fed = -1;
}

void
node_stop_sharing (Node *self)
{
  if (self->share.use)
    self->share.sharing->leave (g_steal_pointer (&self->share.use));
}

static gint
find_slot (const Inlet *self)
{
  for (gint i = 0; i < SHARING_SLOTS; i++) {
    if (self->node->share.inlets[i] == self)
      return i;
  }
  return -1;
}

gboolean
node_waits_for_route (const Node *self)
{
  guint slot;

  return self->share.use
         && self->share.sharing->get_route (self->share.use, &slot) == SHARING_WAITS;
}

// An upstream `publish` runs always: a publisher may come to this member.
gboolean
inlet_is_allowed (const Inlet *self)
{
  const NodeShare *share = &self->node->share;
  const gint own_slot = find_slot (self);
  SharingRoute route;
  guint slot = 0;

  if (!share->use)
    return own_slot < 0;
  route = share->sharing->get_route (share->use, &slot);
  if (own_slot >= 0)
    return route == SHARING_MEMBER && slot == (guint) own_slot;
  return self->is_slate ? route != SHARING_WAITS : route == SHARING_OWN || self->awaits;
}

void
inlet_aim (Inlet *self)
{
  const gint slot = find_slot (self);
  PullConfig *config;

  if (slot < 0 || !self->node->share.use)
    return;
  config = &self->node->share.configs[slot];
  self->node->share.sharing->aim (self->node->share.use, config);
  g_free (self->shown);
  self->shown = g_strndup (config->uri, strcspn (config->uri, "?"));
}

void
inlet_tell_failure (Inlet *self, const gchar *reason)
{
  const gint slot = find_slot (self);

  if (slot >= 0 && self->node->share.use)
    self->node->share.sharing->failed (self->node->share.use, (guint) slot, reason);
}

void
inlet_tell_feed (Inlet *self)
{
  NodeShare *share = &self->node->share;
  const gint slot = self->up ? find_slot (self) : -1;

  if (!share->use || share->fed == slot)
    return;
  share->fed = slot;
  share->sharing->fed (share->use, slot);
}
