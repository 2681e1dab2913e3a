// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the files of a node share: node.c (who uses it, and the stage that it may be),
// node_inlets.c (what its media come from).

#include "base/log_limit.h"
#include "graph/node.h"
#include "relay/publisher.h"
#include "sources/upstream.h"

// How often the upstreams are looked after, where there are several.
#define NODE_TICK_MS 100

// One of the upstreams of a node, or its stage.
typedef struct {
  Node *node;
  gchar *shown; // the URI without credentials, or the stage
  gboolean is_slate;
  RelaySource *source;
  Upstream *upstream;
  gboolean running, up, changed;
  gint64 up_since; // ns
  gchar *reason;
  guint n_failures;
  LogLimit failures;
} Inlet;

typedef struct {
  const NodeCallbacks *callbacks;
  gpointer user;
} User;

struct _Node {
  guint refs;
  guint id;
  void (*gone) (Node *self, gpointer data);
  gpointer gone_data;
  Node *input;
  Stage *stage;
  MountConfig *config; // whose upstreams they are
  PullConfig own;      // of the slate, or of the stage
  Relay *relay;
  GPtrArray *inlets; // of Inlet
  GPtrArray *users;  // of User
  gboolean up;       // and users were told
  guint tick, kept;
  Publisher *publishers[RELAY_MAX_TRACKS];
};

// ---- node.c: its users are told ----

void node_tell_up (Node *self); // once
void node_tell_down (Node *self, const gchar *reason, guint retry_ms);
void node_tell_connecting (Node *self);
void node_tell_changed (Node *self);

// ---- node_inlets.c ----

Inlet *node_inlet (Node *self, guint i);

// The last. `config` must outlive it.
Inlet *node_add_inlet (Node *self, const PullConfig *config, PullMakeFunc make);
void inlet_free (gpointer inlet);

void inlet_run (Inlet *self, gboolean on);
gboolean inlet_is_current (Inlet *self);

// Runs all down to the first that is well or promises to be, and the one that readers see; and has
// the relay take it. One that stands by does so from its start, as it may begin with the only
// keyframe for seconds.
void node_choose (Node *self);

// The same, as a timeout's function.
gboolean node_tick (gpointer node);
