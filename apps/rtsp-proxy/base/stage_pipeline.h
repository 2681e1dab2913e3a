// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The pipeline of a stage, in this process or in a worker.

#include <gst/gst.h>

// Makes the pipeline of a launch text. `fades` is for fades_begin(); NULL or empty: nothing
// changes. Returns NULL and sets `error` if the text or a fade is wrong.
GstElement *stage_pipeline_new (const gchar *text, const gchar *fades, GError **error);
