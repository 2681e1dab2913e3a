// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <glib.h>

// Starts the stage that a WIRE_STAGE message describes. Takes the descriptors: the job's socket,
// and one for each track that comes as packets. Call from the main thread only.
void stage_job_start (const guint8 *message, gsize len, const gint *fds, guint n_fds);
