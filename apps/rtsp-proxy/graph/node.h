// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A stage that may run: one or several upstreams, in order of preference, or a stage that works on
// what another node gives. It runs while it has users. Main thread only.

#include "config/mount_config.h"
#include "relay/relay.h"
#include "stages/stage.h"

typedef struct _Node Node;

typedef enum {
  NODE_IDLE,     // no users
  NODE_STARTING, // it has not given anything yet
  NODE_UP,
  NODE_DOWN, // the last attempt failed; it tries again
} NodeState;

const gchar *node_state_name (NodeState state);

// Called on the main thread; a user may go from within. NULL for what a user has no need of.
typedef struct {
  void (*up) (gpointer user);
  // All that could give something has failed: why, and when the next attempt comes.
  void (*down) (gpointer user, const gchar *reason, guint retry_ms);
  void (*connecting) (gpointer user);
  // Its tracks are others than they were.
  void (*changed) (gpointer user);
} NodeCallbacks;

// The upstreams of a mount, and its slate: the relay changes from one to another at a join point.
Node *node_new_pull (MountConfig *config);
Node *node_new_stage (Node *input, Stage *stage);

Node *node_ref (Node *self);
void node_unref (Node *self);

// Called when the last reference has gone. Before that.
void node_set_gone (Node *self, void (*gone) (Node *self, gpointer data), gpointer data);

void node_use (Node *self, const NodeCallbacks *callbacks, gpointer user);
void node_unuse (Node *self, gpointer user);

Relay *node_get_relay (Node *self);
NodeState node_get_state (Node *self);
Node *node_get_input (Node *self); // NULL: it pulls
Stage *node_get_stage (Node *self);
guint node_get_id (Node *self);

// How long nothing has come of it, in ns.
gint64 node_get_silence (Node *self);

// Its upstreams, with their URIs fit to be shown.
typedef struct {
  const gchar *uri;
  gboolean running, up, current, is_slate;
  const gchar *reason; // of the last failure, or NULL
  guint n_failures;    // ever
} NodeInlet;

guint node_n_inlets (Node *self);
NodeInlet node_get_inlet (Node *self, guint i);

// The name of the window through which stages in other pipelines read a track: raw frames, if that
// is what the stage gives, else RTP with the relay's time. To be freed. Each call is to be answered
// by one of node_unpublish().
gchar *node_publish (Node *self, guint track);
void node_unpublish (Node *self, guint track);
