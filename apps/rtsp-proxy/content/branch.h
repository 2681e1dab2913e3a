// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A chain of stages as one source of a presentation's relay: the current one, or one that is to
// replace it. Call from the main thread only.

#include "graph/graph.h"

typedef struct _Branch Branch;

typedef struct {
  void (*up) (Branch *branch, gpointer owner);
  // `retry_ms`: time until the next attempt.
  void (*down) (Branch *branch, const gchar *reason, guint retry_ms, gpointer owner);
  void (*connecting) (Branch *branch, gpointer owner);
  // The chain has begun to give tracks. See `changed`.
  void (*begun) (Branch *branch, gpointer owner);
  // The relay passes on this chain's packets.
  void (*flows) (Branch *branch, gpointer owner);
} BranchCallbacks;

struct _Branch {
  gpointer owner;
  const BranchCallbacks *callbacks;
  Node *node; // the end of the chain
  RelaySource *source;
  gchar *key; // see graph_dup_key()
  gboolean running;
  gboolean changed; // its tracks differ from those that readers were told
  gchar *problem;   // why it gives no media, or NULL
};

// Does not start the chain. For the arguments see graph_get().
Branch *branch_new (Graph *graph, MountConfig *config, GPtrArray *stages, guint instance,
    Relay *relay, const BranchCallbacks *callbacks, gpointer owner);
void branch_free (Branch *self);
void branch_start (Branch *self); // does nothing if it runs
void branch_stop (Branch *self);

// Returns the URI of the upstream that is up (transfer full), or NULL.
gchar *branch_dup_uri (const Branch *self);
