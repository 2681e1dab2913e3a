// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "sources/pull.h"
#include "stages/stage.h"

// What a stage reads.
typedef struct {
  Relay *relay; // the tracks
  Relay *clock; // whose sender reports tell the time of what comes
  // The window of a track, made for the first who asks, and the end of that: a name of an
  // intervalcache's channel. Main thread.
  gchar *(*publish) (gpointer data, guint track);
  void (*unpublish) (gpointer data, guint track);
  gpointer data; // stays until `release`
  void (*release) (gpointer data);
} StageInput;

// A life of a stage: a pipeline that reads the windows of the tracks that the stage is about, and
// pushes what it makes of them into the context's relay, or publishes it under the name that
// node_publish() gives for the node of this number. The other tracks are linked through. Main
// thread; the pipeline keeps to the rules of PullMakeFunc. What `input` holds is released with it,
// or at once where it fails.
GstElement *stage_run_new (
    const StageInput *input, Stage *stage, guint id, const PullContext *context, GError **error);
