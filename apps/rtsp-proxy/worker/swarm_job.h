// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The readers of titles of swarms (stores/swarm_wire.h) in their worker process.

#include <glib.h>

// Takes part in the swarm of a title, and reads what the proxy asks for until it closes its socket.
// Takes ownership of the `n` descriptors. Call from the main thread.
void swarm_job_start (const guint8 *message, gsize length, const gint *fds, guint n);

// Waits until the readers have left, whose sockets the proxy has closed, 1 s at most. Returns FALSE
// if there were none, or some are still there.
gboolean swarm_jobs_finish (void);
