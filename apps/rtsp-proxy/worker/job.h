// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A job of a worker: runs one upstream and sends its packets to the proxy. Call from the main
// thread only.

#include <glib.h>

// Starts the job that a WIRE_JOB message describes. Takes the job's socket, and the upstream's
// (-1: none). The job ends, and closes both, when the proxy says so or closes its end.
void job_start (const guint8 *message, gsize len, gint socket, gint upstream);
