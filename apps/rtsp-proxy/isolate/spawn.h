// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Starts worker processes: their arguments, environment and descriptors.

#include <glib.h>

#include "isolate/sandbox.h"

#define WORKER_NAME "rtsp-proxy-worker"
#define WORKER_READS "read=" // an argument: a path that it may read

// Sets the options of GStreamer (--gst-...) that workers get; NULL: none. Call before the first
// worker starts.
void spawn_set_options (const gchar *const *options);

// Lets workers of the kind that start from now on read a file, or all in a folder. Jobs join such
// workers only from then on. Does nothing if the path is allowed already. Call from any thread.
void spawn_allow (SandboxProfile kind, const gchar *path);

// Returns how many paths were allowed. Call from any thread.
guint spawn_count_allowed (SandboxProfile kind);

// Reports whether an operator wants to see GStreamer's debug output.
gboolean spawn_is_debugged (void);

// Starts a process. `output` is its standard error; -1: the proxy's. Returns 0 or an errno.
gint spawn_worker (SandboxProfile kind, gint socket, gint output, gint *pid);
