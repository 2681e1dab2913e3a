// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The structure and functions that presentation.c (users, media, configuration) and
// presentation_branches.c (the chains of stages that feed the relay) share.

#include "base/log.h"
#include "content/branch.h"
#include "content/presentation.h"
#include "content/waiting.h"

struct _Presentation {
  gatomicrefcount refs;
  gchar *path, *mount_path, *query, *label;
  Relay *relay;
  const PresentationCallbacks *callbacks;
  gpointer data;
  guint instance;
  gint64 made; // ns, see clock_now()
  Waiting *waiting;
  LogLimit failures;

  // Main thread only.
  Graph *graph;
  GPtrArray *stages;
  guint end;       // timer: the last readers of an ended session have received all of the title
  Branch *current; // NULL while no reader needs it
  Branch *next;    // is to replace the current one, or NULL
  guint switch_timeout;
  gchar *problem; // why the last new chain was not taken, or NULL
  guint linger;   // timer

  GMutex lock;         // guards the fields below
  MountConfig *config; // written on the main thread only
  guint n_users;
  gboolean known;       // media has flowed, so the tracks are known
  gint64 failing_until; // ns: when the next attempt begins, after a failed one; else 0
  gboolean stopped;
  gboolean ended; // a session of a stored title: its upstream has ended
  guint media_generation;
  gpointer media; // kept ready for readers, or NULL
  GDestroyNotify release_media;
  gboolean opening;           // media is being prepared
  gboolean outdated;          // readers were closed since that began: the media is not kept
  gint64 media_failing_until; // ns: when media that failed to be prepared is tried again
};

// Calls those that wait, unless the state is STARTING. Call with no lock held.
void presentation_tell (Presentation *self);

// Closes the readers and prepares new media for those that come again. Main thread only.
void presentation_close_readers (Presentation *self, const gchar *reason);

// Has media prepared if it is needed and not there. Main thread only.
void presentation_open_media (Presentation *self);

// ---- branches; main thread only ----

// Starts the current branch if it does not run.
void presentation_start_branch (Presentation *self);

// Replaces the current branch at once. For a branch whose media no reader has received.
void presentation_replace_branch (Presentation *self);

// Starts the next branch, which replaces the current one at a join point.
void presentation_start_beside (Presentation *self);

// Drops the next branch, if there is one.
void presentation_drop_next (Presentation *self);
