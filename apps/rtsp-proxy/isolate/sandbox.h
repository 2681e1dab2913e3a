// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Takes from a worker process what it does not need: privileges, other processes, and the network.

#include <glib.h>

// Call before the process has a second thread. `online`: the process may open sockets. Returns
// FALSE, and logs why, if the system refuses.
gboolean sandbox_enter (gboolean online);
