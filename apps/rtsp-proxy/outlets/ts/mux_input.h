// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A multiplexer that is fed by a relay: a pipeline with an appsrc for the frames of each track that
// the container can carry. Frames have the relay's time, which is common to all tracks, so the
// offset between audio and video is the relay's. The upstream's threads make frames and queue them,
// within bounds.
//
// A multiplexer waits for all of its tracks. So a track that has had no packet when another has had
// them for 1 s is left out, and one that falls silent later is given gaps.

#include "outlets/ts/carriage.h"
#include "relay/relay.h"
#include "svc/layerset.h"

typedef struct _MuxInput MuxInput;

// Does what carriage_choose() does, of a relay's tracks. Call from any thread.
guint32 mux_input_choose (const Carriage *carriage, Relay *relay, gchar **left_out);

// Returns why none of the relay's tracks can be carried, or NULL. Call from any thread. (transfer
// full)
gchar *mux_input_dup_problem (const Carriage *carriage, Relay *relay);

// Called on the main thread, never after mux_input_free().
typedef struct {
  // The pipeline was made and is about to start. `filters` are the elements that select layers (of
  // GstElement). Returns FALSE if it cannot be used.
  gboolean (*made) (gpointer owner, GstElement *pipeline, GPtrArray *filters, gboolean has_video);
  // The multiplexer has ended: its pipeline failed, or the tracks have changed. A pipeline that has
  // been made is stopped.
  void (*ended) (gpointer owner, const gchar *reason);
} MuxInputCallbacks;

// Begins as soon as the relay's tracks are known and have packets. `tail` is launch text for what
// follows the multiplexer; NULL: an appsink "out". Call from any thread.
MuxInput *mux_input_new (const Carriage *carriage, Relay *relay, WeirLayerSet layers,
    const gchar *label, const gchar *tail, const MuxInputCallbacks *callbacks, gpointer owner);

// Returns the tracks that are left out, or NULL. Call on the main thread. (transfer none)
const gchar *mux_input_get_left_out (MuxInput *self);

// Call on the main thread.
void mux_input_free (MuxInput *self);
