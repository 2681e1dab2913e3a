// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A job of a worker: reads, demuxes and payloads a stored title, and sends its packets to the proxy
// (isolate/title_wire.h). Each has a thread of its own for the proxy's commands. Call from the main
// thread only.

#include <glib.h>

// Starts the job. Takes `n` descriptors: the socket for control, the file, and a socket for each
// track. The title is closed when the proxy shuts the socket down.
void title_job_start (const gint *fds, guint n);
