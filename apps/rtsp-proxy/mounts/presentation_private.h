// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The structure of a presentation, for presentation.c and its unit test.

#include "base/log.h"
#include "mounts/branch.h"
#include "mounts/presentation.h"
#include "mounts/waiting.h"
#include "relay/tape_player.h"

struct _Presentation {
  gatomicrefcount refs;
  gchar *path, *mount_path, *query, *label;
  Relay *relay;
  const PresentationCallbacks *callbacks;
  gpointer data;
  guint instance;
  gint64 made; // when, in ns of clock_now()
  Waiting *waiting;
  gint64 at;          // a session: where in the title it begins, ns
  Tape *tape;         // a session that may be sought: its packets; else NULL
  TapePlayer *player; // of a reader of such a session, else NULL
  Choices *choices;
  gint is_choice; // atomic: it is counted
  LogLimit failures;

  // Main thread only.
  Graph *graph;
  guint end;            // timer that closes the readers of a session whose title has ended
  Branch *current;      // NULL while no reader needs it
  Branch *next;         // starts beside the current one and replaces it; or NULL
  guint switch_timeout; // timer that gives up the next branch
  gchar *problem;       // why the last new chain did not replace the old one, or NULL
  guint64 n_failovers;
  guint linger;     // timer that stops the presentation when its readers have left
  gboolean told_up; // by the events
  gchar *added;     // the stage of presentation_derive(), or NULL

  GMutex lock;         // protects the fields below
  MountConfig *config; // written on the main thread only
  GPtrArray *stages;   // the same
  GPtrArray *derived;  // presentations of presentation_derive(), not owned
  guint n_users;
  gboolean known;       // media has flowed, so the tracks are known
  gint64 failing_until; // after a failed attempt: when the next one starts, ns; else 0
  gchar *unfit;         // why that attempt failed and each other one would, or NULL
  gboolean stopped;
  gboolean ended;        // a session of a stored title: its upstream has ended
  Presentation *session; // that `player` plays; used, and NULL once it is stopped
};

// ---- presentation.c ----

// Calls the callbacks of presentation_wait(), unless the state is STARTING. Call with no lock held.
void presentation_end_waiting (Presentation *self);

// Closes the readers after a time in which they can get what has been sent. Main thread only.
void presentation_close_at_end (Presentation *self, guint after_ms);

// ---- presentation_derived.c; main thread only ----

void presentation_configure_derived (Presentation *self);
void presentation_stop_derived (Presentation *self);

// ---- presentation_title.c ----

// Reports whether where the session plays is not known yet. Call with the lock held.
gboolean presentation_awaits_place (const Presentation *self);

// The session has media: an upstream that has not said by now that it can seek never does. Main
// thread only.
void presentation_note_up (Presentation *self);

// Ends what the presentation has of a title. Main thread only.
void presentation_stop_title (Presentation *self);
