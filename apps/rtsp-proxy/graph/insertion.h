// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A clip that is played once in the media of a node of upstreams, between two keyframes of theirs.
// A node has one at a time. Call from the main thread only.

#include "graph/node.h"

typedef struct _Insertion Insertion;

typedef enum {
  INSERTION_CHECKING,  // the clip is being opened
  INSERTION_PLANNED,   // its time has not come
  INSERTION_WAITING,   // for a keyframe of the upstream
  INSERTION_PLAYING,   // readers see it
  INSERTION_RETURNING, // its time is over; readers see it until a keyframe of the upstream comes
} InsertionState;

typedef struct {
  const gchar *folder, *clip; // the clip's path in the folder
  gint64 at;                  // Unix time in us; 0: at the next keyframe
  gint64 length;              // in ns; 0: that of the clip
} InsertionPlan;

typedef struct {
  const gchar *clip;
  InsertionState state;
  gint64 at;       // as planned
  gint64 begun;    // Unix time in us at which readers saw its first picture; 0: not yet
  gint64 length;   // ns; 0: not known
  gboolean by_cue; // a cue has planned it
  guint32 event;   // of that cue
} InsertionFacts;

typedef struct {
  // The clip was checked; `wrong` says why it cannot be inserted, or is NULL: G_IO_ERROR_NOT_FOUND,
  // there is no such clip; G_IO_ERROR_INVALID_ARGUMENT, the plan does not fit it;
  // G_IO_ERROR_NOT_SUPPORTED, it does not fit the media. Called once, perhaps within
  // insertion_new(). May be NULL.
  void (*checked) (gpointer owner, const GError *wrong);
  // The insertion is over, also if it never began; the node forgets it. Called once, after
  // checked().
  void (*over) (gpointer owner);
} InsertionCallbacks;

// Plans a clip for the node, which has none and whose tracks are known.
void insertion_new (
    Node *node, const InsertionPlan *plan, const InsertionCallbacks *callbacks, gpointer owner);

// Returns the insertion of the node, or NULL.
Insertion *insertion_find (Node *node);

InsertionFacts insertion_get_facts (Insertion *self);
const gchar *insertion_state_name (InsertionState state);

// Ends the insertion: at once if readers do not see it yet, else at the upstream's next keyframe.
void insertion_end (Insertion *self);
