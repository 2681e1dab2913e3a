// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Runs a stage in a worker process, which parses and decodes what the upstream sends. A crash there
// ends the run, and not the proxy. Call from the main thread only.

#include "graph/stage_tracks.h"

// Reports whether the stage runs in a worker. A stage that takes the raw frames of the stage before
// it runs in the process that makes them: `input` says whether that is a worker.
gboolean stage_isolated_wants (const Stage *stage, gboolean input);

// Starts a run of a stage, like stage_run_new(). `where` is the worker that makes the raw frames
// that the stage takes; NULL: any worker. Returns NULL and sets `error` on failure.
gpointer stage_isolated_new (const StageInput *input, Stage *stage, guint id, Worker *where,
    const PullContext *context, GError **error);

// As in PullLight.
void stage_isolated_close (gpointer run, GDestroyNotify closed, gpointer data);
Worker *stage_isolated_get_worker (gpointer run);
