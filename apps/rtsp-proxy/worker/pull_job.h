// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <glib.h>

// Starts the upstream that a WIRE_JOB message describes. Takes the job's socket, and the upstream's
// (-1: none). Call from the main thread only.
void pull_job_start (const guint8 *message, gsize len, gint socket, gint upstream);
