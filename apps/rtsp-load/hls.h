// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A run of players of Low-Latency HLS, in one thread.

#include "options.h"

// Runs until --duration is over, until all players have failed, or until SIGINT or SIGTERM, and
// prints the result. Returns whether each player had parts and none failed.
gboolean hls_run (const Options *options);
