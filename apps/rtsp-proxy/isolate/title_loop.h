// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "base/loop.h"

// Returns the loop that waits for the sockets of all titles of the process, or NULL if the system
// has no thread or descriptor left for it. Its thread starts with the first call, and never ends.
// Call from any thread.
Loop *title_loop_get (void);
