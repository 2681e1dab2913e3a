// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Shared by the files of a node: node.c (users, and the stage) and node_inlets.c (upstreams).

#include "base/log_limit.h"
#include "graph/node.h"
#include "relay/publisher.h"
#include "sources/upstream.h"

// Interval at which a node with several upstreams chooses among them, in ms.
#define NODE_TICK_MS 100

// An upstream of a node, or its stage.
typedef struct {
  Node *node;
  gchar *shown; // the URI without credentials, or the stage's name
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
  MountConfig *config; // has the upstreams
  PullConfig own;      // for the slate or the stage
  Relay *relay;
  GPtrArray *inlets; // of Inlet
  GPtrArray *users;  // of User
  gboolean up;       // users were told that media flow
  guint tick, kept;
  Publisher *publishers[RELAY_MAX_TRACKS];
};

// ---- node.c: callbacks to the users ----

void node_tell_up (Node *self); // no effect if they were told before
void node_tell_down (Node *self, const gchar *reason, guint retry_ms);
void node_tell_connecting (Node *self);
void node_tell_changed (Node *self);

// ---- node_inlets.c ----

Inlet *node_inlet (Node *self, guint i);

// Adds an upstream after the others. `config` must outlive it.
Inlet *node_add_inlet (Node *self, const PullConfig *config, PullMakeFunc make);
void inlet_free (gpointer inlet);

void inlet_run (Inlet *self, gboolean on);
gboolean inlet_is_current (Inlet *self);

// Runs the upstreams from the first one to the first that is up, or may soon be, and the one that
// readers see. Makes the relay take that upstream. An upstream stands by from its start, because it
// may begin with the only keyframe for seconds.
void node_choose (Node *self);

// Calls node_choose(), as a GSourceFunc.
gboolean node_tick (gpointer node);
