// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A chain of stages that feeds the relay of a presentation, or is to. Main thread only.

#include "graph/graph.h"

typedef struct _Branch Branch;

typedef struct {
  void (*up) (Branch *branch, gpointer owner);
  void (*down) (Branch *branch, const gchar *reason, guint retry_ms, gpointer owner);
  void (*connecting) (Branch *branch, gpointer owner);
  // It begins to give tracks; see `changed`.
  void (*begun) (Branch *branch, gpointer owner);
  // Its media is what the relay gives on.
  void (*flows) (Branch *branch, gpointer owner);
} BranchCallbacks;

struct _Branch {
  gpointer owner;
  const BranchCallbacks *callbacks;
  Node *node; // the end of the chain
  RelaySource *source;
  gchar *key; // see graph_dup_key()
  gboolean running;
  gboolean changed; // readers could not go on with its tracks
  gchar *problem;   // why it gives nothing, or NULL
};

Branch *branch_new (Graph *graph, MountConfig *config, GPtrArray *stages, guint instance,
    Relay *relay, const BranchCallbacks *callbacks, gpointer owner);
void branch_free (Branch *self);
void branch_start (Branch *self);
void branch_stop (Branch *self);

// Of the upstream that is up, or NULL; to be freed.
gchar *branch_dup_uri (const Branch *self);
