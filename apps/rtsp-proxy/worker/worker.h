// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A worker process (isolate/pool.h): runs upstreams for the proxy and sends it their packets.

#include <glib.h>

// Reports whether the process was started as a worker.
gboolean worker_is (int argc, char **argv);

// Runs jobs until the proxy ends. Returns the exit status.
int worker_run (int argc, char **argv);
