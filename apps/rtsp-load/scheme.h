// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A run of clients that follow the schedules of broadcast titles, in one thread.

#include "options.h"

// Runs until all clients have their titles, until --duration is over, or until SIGINT or SIGTERM,
// and prints the result. Returns whether no client failed.
gboolean scheme_run (const Options *options);
