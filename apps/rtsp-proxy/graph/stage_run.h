// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Runs a stage: makes its pipeline between the relay that it reads and the relay that it feeds.

#include "sources/pull.h"
#include "stages/stage.h"

// The input of a stage.
typedef struct {
  Relay *relay; // has the tracks
  Relay *clock; // has the sender reports that give the tracks' NTP time
  // The functions are called on the main thread. `publish` publishes a track as a window and
  // returns the window's name, an intervalcache channel (transfer full). `unpublish` ends that.
  gchar *(*publish) (gpointer data, guint track);
  void (*unpublish) (gpointer data, guint track);
  gpointer data; // valid until `release`
  void (*release) (gpointer data);
} StageInput;

// Makes the pipeline for one run of a stage. The pipeline reads the windows of the tracks that the
// stage processes. It pushes RTP into the context's relay, and publishes raw frames under the name
// that node_publish() returns for node `id`. The relay gets the other tracks from the input's
// relay. The pipeline follows the rules of PullMakeFunc. `input` is released with the pipeline, or
// at once on failure. Call from the main thread only.
GstElement *stage_run_new (
    const StageInput *input, Stage *stage, guint id, const PullContext *context, GError **error);
