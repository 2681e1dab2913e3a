// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The structure of a presentation, for presentation.c and its unit test.

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
