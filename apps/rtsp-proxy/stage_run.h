// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "node.h"

// A life of a stage: a pipeline that reads the windows of the tracks that the stage is about, and
// pushes what it makes of them into the context's relay, or publishes it under the name that
// node_publish() gives for the node of this number. The other tracks are linked through. Main
// thread; the pipeline keeps to the rules of pull_new().
GstElement *stage_run_new (
    Node *input, Stage *stage, guint id, const PullContext *context, GError **error);
