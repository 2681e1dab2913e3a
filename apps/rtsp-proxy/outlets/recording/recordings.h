// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The recordings of all mounts. They follow the configuration: those of a mount that was added,
// changed or removed begin and end within half a second. There is one of these for the process.
// Call from the main thread only.

#include "outlets/recording/recording.h"
#include "proxy/outlet.h"

// Its stop() waits for what is still to be written, and for the hooks.
extern const Outlet recordings_outlet;

// Returns the recording of a mount, or NULL. (transfer none)
Recording *recordings_find (const gchar *mount);
