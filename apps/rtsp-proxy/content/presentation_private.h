// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the parts of a presentation share: its life and users (presentation.c), and the chains of
// stages that feed it (presentation_branches.c).

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
  gint64 made; // ns
  Waiting *waiting;
  LogLimit failures;

  // Main thread only.
  Graph *graph;
  GPtrArray *stages;
  guint end;       // of a stored title: what is still in the window is sent
  Branch *current; // NULL while nobody needs it
  Branch *next;
  guint switch_timeout;
  gchar *problem; // of the last change
  guint linger;

  GMutex lock; // all below
  MountConfig *config;
  guint n_users;
  gboolean known;       // media has flowed, so the tracks are real
  gint64 failing_until; // ns: the last attempt failed and the next comes then; 0 while one runs
  gboolean stopped;
  gboolean ended; // a stored title: nothing more will come
  guint media_generation;
  gpointer media; // the one that is kept ready
  GDestroyNotify release_media;
  gboolean opening;           // it is being prepared
  gboolean outdated;          // what is being prepared: readers want another one by now
  gint64 media_failing_until; // ns: it could not be prepared, and is tried again then
};

// Tells who waits, if there is no more to wait for. With no lock held.
void presentation_tell (Presentation *self);

// Has its readers come again. Main thread.
void presentation_close_readers (Presentation *self, const gchar *reason);

// Has its media prepared, if it is to be. Main thread.
void presentation_open_media (Presentation *self);

// ---- its branches; main thread ----

// Starts what feeds it, or goes on with it.
void presentation_start_branch (Presentation *self);

// In place of one of which nobody has seen anything.
void presentation_replace_branch (Presentation *self);

// Beside the one that feeds it, which is left at the next join point.
void presentation_start_beside (Presentation *self);

void presentation_drop_next (Presentation *self);
