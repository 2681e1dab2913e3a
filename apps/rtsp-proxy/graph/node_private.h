// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Shared by the files of a node: node.c (users, and the stage), node_inlets.c (upstreams)
// and node_sides.c (what a stage with several inputs takes).

#include "base/log_limit.h"
#include "base/timer.h"
#include "graph/node.h"
#include "relay/publisher.h"
#include "sources/sharing.h"
#include "sources/upstream.h"

// Interval at which a node with several upstreams chooses among them, in ms; with a warm standby,
// which takes over from a silent upstream within 300 ms.
#define NODE_TICK_MS 100
#define NODE_WARM_TICK_MS 50

// An upstream of a node, the slate, or the stage.
typedef struct {
  Node *node;
  gchar *shown; // the URI without credentials, or the stage's name
  gboolean is_slate;
  gboolean awaits; // a peer that connects
  RelaySource *source;
  Upstream *upstream;
  Node *from;       // the node with its source stages, or NULL
  PullConfig *link; // of `upstream` if there is such a node: reads that node
  gboolean running, up;
  gboolean changed; // its tracks differ from the relay's
  gint64 up_since;  // ns
  gboolean failed;  // another one is to replace it
  gchar *reason;    // of the last failure, with the URI; NULL after a success
  gint64 failed_us; // when that was; Unix time in us
  guint n_failures;
  LogLimit failures;
} Inlet;

typedef struct _Insertion Insertion; // see insertion.h

typedef struct {
  const NodeCallbacks *callbacks;
  gpointer user;
} User;

// The stream as other members of a cluster have it.
typedef struct {
  Inlet *inlets[SHARING_SLOTS]; // NULL: it is not shared
  PullConfig configs[SHARING_SLOTS];
  const Sharing *sharing; // of `use`
  gpointer use;           // NULL: the node does not run
  gint fed;               // the slot that feeds the relay, or -1
} NodeShare;

struct _Node {
  guint refs;
  guint id;
  void (*notify) (Node *self, gpointer data); // before the node is freed
  gpointer notify_data;
  Node *input;      // NULL for a node of upstreams
  GPtrArray *sides; // of Node: those whose raw frames a stage with several inputs takes; or NULL
  gboolean uses_sides;
  Timer *sides_start;  // of node_start_sides()
  Timer *alone;        // starts a stage with several inputs without the first
  gboolean is_alone;   // it runs so, and the first has had no tracks yet
  Node *joining;       // the node that has this one as a side and chooses its worker; or NULL
  Stage *stage;        // NULL for a node of upstreams
  MountConfig *config; // owns the configuration of the upstreams
  gboolean is_source;  // reads one upstream for source stages; the node behind them inserts
  PullConfig own;      // configuration of the slate or the stage
  NodeShare share;
  Relay *relay;
  GPtrArray *inlets;    // of Inlet
  Inlet *ready;         // the warm standby, if it could take over now; or NULL
  Insertion *insertion; // of a clip, or NULL
  guint32 cued;         // the event for which a clip was last planned
  gint64 cued_at;       // when that was, ns; 0: never
  Inlet *logged;        // the inlet that the log says readers see; NULL: the first
  LogLimit switches;
  GPtrArray *users; // of User
  gboolean up;      // users know that the node has media
  Timer *tick;      // of node_tick()
  Timer *kept;      // releases keep_failures()'s reference
  Publisher *publishers[RELAY_MAX_TRACKS];
};

// ---- node.c: callbacks to the users ----

void node_tell_up (Node *self); // no effect if the users know
void node_tell_down (Node *self, const gchar *reason, guint retry_ms);
void node_tell_connecting (Node *self);
void node_tell_changed (Node *self);
void node_tell_failed_over (Node *self);
void node_tell_cued (Node *self, const WeirCue *cue);

// ---- node_sides.c ----

// Starts the nodes that a stage with several inputs takes, when its run has begun: a worker process
// is chosen then. No effect for other nodes.
void node_start_sides (Node *self);
void node_stop_sides (Node *self);

// The first input does not run yet, and it runs. No effect for other nodes.
void node_await_first (Node *self);
void node_take_first (Node *self);

// ---- node_inlets.c ----

Inlet *node_inlet (Node *self, guint i);

// Adds an upstream, or the stage, after the others. `config` must outlive it.
Inlet *node_add_inlet (Node *self, const PullConfig *config, PullMakeFunc make);
// Adds an upstream that `from` reads and passes through its source stages.
Inlet *node_add_source (Node *self, const PullConfig *config, Node *from);
void inlet_free (gpointer inlet);

// Reports whether the mount wants a warm standby.
gboolean node_is_warm (const Node *self);

void inlet_run (Inlet *self, gboolean on);
gboolean inlet_is_current (Inlet *self);

// Runs the upstreams in order of preference, up to the first that is up or starting, and the
// current one; stops the others. Switches the relay to that first upstream. The relay knows a
// starting upstream before its first packet, because that packet may be the only keyframe for
// seconds. With a warm standby, also runs the next one that is up or starting.
void node_choose (Node *self);

// Lets the first upstream with media take over from a clip at its next keyframe.
void node_come_back (Node *self);

// Calls node_choose(), as a GSourceFunc.
gboolean node_tick (gpointer node);

// ---- node_share.c ----

// Adds the inlets of other members if the stream is shared. They have no effect while the node does
// not run.
void node_add_members (Node *self);
void node_free_members (Node *self);
gboolean node_is_shared (const Node *self);
void node_start_sharing (Node *self);
void node_stop_sharing (Node *self);

// Reports whether it is being asked who has the stream.
gboolean node_waits_for_route (const Node *self);

// Reports whether an inlet may run: one of another member, or one of this one.
gboolean inlet_is_allowed (const Inlet *self);

// A run of the inlet begins, or has ended; no effect for those of this member.
void inlet_aim (Inlet *self);
void inlet_tell_failure (Inlet *self, const gchar *reason);

// The inlet feeds the relay, or did so last.
void inlet_tell_feed (Inlet *self);

// ---- insertion.c ----

// Frees the insertion at once: the node stops. May be NULL.
void insertion_free (Insertion *self, const gchar *reason);

// Reports whether readers see the clip. `self` may be NULL.
gboolean insertion_is_on_air (const Insertion *self);

// Begins or ends the insertion of the clip that the mount has for cues.
void insertion_take_cue (Node *node, const WeirCue *cue);

// Returns the time since the clip's last packet, in ns.
gint64 insertion_get_silence (Insertion *self);
