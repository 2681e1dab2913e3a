// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A chain of stages as a source of a presentation's relay: the current chain, or the next one that
// replaces it. Call from the main thread only.

#include "graph/graph.h"

typedef struct _Branch Branch;

typedef struct {
  void (*up) (Branch *branch, gpointer owner);
  // The chain has failed; the next attempt starts in `retry_ms`.
  void (*down) (Branch *branch, const gchar *reason, guint retry_ms, gpointer owner);
  void (*connecting) (Branch *branch, gpointer owner);
  // A run of the chain has begun, and its tracks are known. See `changed`.
  void (*begun) (Branch *branch, gpointer owner);
  // The relay has begun to pass on this chain's packets.
  void (*flows) (Branch *branch, gpointer owner);
  // Another upstream, or the slate, took over from an upstream that had failed.
  void (*failed_over) (Branch *branch, gpointer owner);
} BranchCallbacks;

struct _Branch {
  gpointer owner;
  const BranchCallbacks *callbacks;
  Node *node; // the end of the chain
  RelaySource *source;
  gchar *key; // see graph_dup_key()
  gboolean running;
  gboolean changed; // its tracks differ from the relay's
  gchar *problem;   // reason of the last failure; NULL when up
};

// Does not start the chain. For the arguments see graph_get().
Branch *branch_new (Graph *graph, MountConfig *config, GPtrArray *stages, guint instance,
    Relay *relay, const BranchCallbacks *callbacks, gpointer owner);
void branch_free (Branch *self);
void branch_start (Branch *self); // has no effect if it runs
void branch_stop (Branch *self);

// Returns the URI of the first upstream that is up (transfer full), or NULL.
gchar *branch_dup_uri (const Branch *self);
