// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The structure and functions that presentation.c (users, configuration) and
// presentation_branches.c (the chains of stages that feed the relay) share.

#include "base/log.h"
#include "mounts/branch.h"
#include "mounts/presentation.h"
#include "mounts/waiting.h"

struct _Presentation {
  gatomicrefcount refs;
  gchar *path, *mount_path, *query, *label;
  Relay *relay;
  const PresentationCallbacks *callbacks;
  gpointer data;
  guint instance;
  gint64 made; // when, in ns of clock_now()
  Waiting *waiting;
  Choices *choices;
  gint is_choice; // atomic: it is counted
  LogLimit failures;

  // Main thread only.
  Graph *graph;
  GPtrArray *stages;
  guint end;            // timer that closes the readers of a session whose title has ended
  Branch *current;      // NULL while no reader needs it
  Branch *next;         // starts beside the current one and replaces it; or NULL
  guint switch_timeout; // timer that gives up the next branch
  gchar *problem;       // why the last new chain did not replace the old one, or NULL
  guint64 n_failovers;
  guint linger; // timer that stops the presentation when its readers have left

  GMutex lock;         // protects the fields below
  MountConfig *config; // written on the main thread only
  guint n_users;
  gboolean known;       // media has flowed, so the tracks are known
  gint64 failing_until; // after a failed attempt: when the next one starts, ns; else 0
  gchar *unfit;         // why that attempt failed and each other one would, or NULL
  gboolean stopped;
  gboolean ended; // a session of a stored title: its upstream has ended
};

// Calls the callbacks of presentation_wait(), unless the state is STARTING. Call with no lock held.
void presentation_end_waiting (Presentation *self);

// Closes the readers. Main thread only.
void presentation_close_readers (Presentation *self, const gchar *reason);

// ---- branches; main thread only ----

// Starts the current branch if it does not run.
void presentation_start_branch (Presentation *self);

// Replaces the current branch at once. Call only if no reader has received its media.
void presentation_replace_branch (Presentation *self);

// Starts the next branch, which replaces the current one at a join point.
void presentation_start_beside (Presentation *self);

// Drops the next branch, if there is one.
void presentation_drop_next (Presentation *self);
