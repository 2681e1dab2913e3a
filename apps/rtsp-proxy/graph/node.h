// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A node of the graph: the upstreams of a mount in order of preference, or a stage that processes
// the tracks of another node. It runs while it has users. Call from the main thread only.

#include "config/mount_config.h"
#include "codec/tscues.h"
#include "relay/relay.h"
#include "stages/stage.h"

typedef struct _Node Node;

typedef enum {
  NODE_IDLE,     // has no users, does not run
  NODE_STARTING, // has sent no media yet
  NODE_WAITING,  // nobody publishes to it
  NODE_UP,
  NODE_DOWN, // the last attempt failed; the node will try again
} NodeState;

const gchar *node_state_name (NodeState state);

// Called on the main thread; a user may remove itself from within. A function may be NULL.
typedef struct {
  void (*up) (gpointer user);
  // Every upstream has failed. `reason` says why; the next attempt starts in `retry_ms`.
  void (*down) (gpointer user, const gchar *reason, guint retry_ms);
  void (*connecting) (gpointer user);
  // The node's tracks have changed.
  void (*changed) (gpointer user);
  // Another upstream, or the slate, took over from an upstream that had failed.
  void (*failed_over) (gpointer user);
  // A cue of SCTE 35 came from an upstream.
  void (*cued) (gpointer user, const WeirCue *cue);
} NodeCallbacks;

// Makes a node for the mount's upstreams and its slate. Its relay switches between them at join
// points. `sources`: a Node for each upstream, which reads it and has its source stages; or NULL.
Node *node_new_pull (MountConfig *config, const GPtrArray *sources);
// Makes a node for one of the mount's upstreams alone, which source stages follow.
Node *node_new_upstream (MountConfig *config, guint upstream);
// Makes a node for a stage that processes the tracks of `input`. `joining`: the node has this node
// beside it, which takes the raw frames of several mounts, and runs in the same process; or NULL.
Node *node_new_stage (Node *input, Stage *stage, Node *joining);

// Adds a node whose raw frames a stage with several inputs takes, before its first use.
void node_add_side (Node *self, Node *side);

// Reports whether a worker process runs the node's stage.
gboolean node_is_isolated (const Node *self);

// Set where the upstreams play a title from, or which of a publisher's layers they take; see
// upstream_play(). Call one before the node has users.
void node_play_from (Node *self, gint64 from);
void node_take_rank (Node *self, guint rank);

Node *node_ref (Node *self);
void node_unref (Node *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Node, node_unref)

// Sets a function that is called before the node is freed.
void node_set_free_notify (Node *self, void (*notify) (Node *self, gpointer data), gpointer data);

// Adds and removes a user. The first user starts the node, the last one to leave stops it. Each
// user holds a reference.
void node_use (Node *self, const NodeCallbacks *callbacks, gpointer user);
void node_unuse (Node *self, gpointer user);

Relay *node_get_relay (Node *self);
NodeState node_get_state (Node *self);
Node *node_get_input (Node *self); // NULL for a node of upstreams
guint node_n_sides (Node *self);   // of node_add_side()
Node *node_get_side (Node *self, guint i);
Stage *node_get_stage (Node *self);
guint node_get_id (Node *self);

// Returns the time since the last packet of the upstream that feeds the node, or of the stage, in
// ns; G_MAXINT64 if that is not up.
gint64 node_get_silence (Node *self);

// Returns why the node can have no media until its clip is another, or NULL. Valid until the node
// starts or stops, or calls its users.
const gchar *node_get_unfit (Node *self);

// Reports whether the node has a warm standby that could take over at once. `*wanted` says whether
// its mount wants one.
gboolean node_has_standby (Node *self, gboolean *wanted);

// An upstream, or the stage, of a node. Passwords are removed from `uri`.
typedef struct {
  const gchar *uri;
  gboolean running, up, current, is_slate, awaits;
  const gchar *reason; // of the last failure, or NULL
  gint64 failed_us;    // when that was; Unix time in us
  guint n_failures;    // since the node was made
  gint worker;         // the process that runs it; 0: this one
} NodeInlet;

guint node_n_inlets (Node *self);
NodeInlet node_get_inlet (Node *self, guint i);
Node *node_get_source (Node *self, guint i); // of the inlet, as in node_new_pull(); or NULL

// Returns "idle", "starting", "waiting", "up", "standing by" or "down".
const gchar *node_inlet_state_name (const NodeInlet *inlet);

// Publishes a track for stages in other pipelines, and returns the name of its window (transfer
// full). The window holds raw frames if the stage makes raw frames of the track, else RTP with the
// relay's time. Each call needs a node_unpublish().
gchar *node_publish (Node *self, guint track);
void node_unpublish (Node *self, guint track);
