// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Runs a stage in this process: makes its pipeline between the relay that it reads and the relay
// that it feeds.

#include "graph/stage_tracks.h"

// Makes the pipeline for one run of a stage. The pipeline reads the windows of the tracks that the
// stage processes. It pushes RTP into the context's relay, and publishes raw frames under the name
// that node_publish() returns for node `id`. The relay gets the other tracks from the input's
// relay. The pipeline follows the rules of PullMakeFunc. `input` is released with the pipeline, or
// at once on failure. Call from the main thread only.
GstElement *stage_run_new (
    const StageInput *input, Stage *stage, guint id, const PullContext *context, GError **error);
