// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The files that a launch line or the launch text of a stage names: an operator wrote it, so its
// worker may read them.

#include "isolate/pool.h"

// Returns the absolute paths in the text that exist. For a pattern such as /srv/%05d.png, it is the
// folder. The caller owns the result.
GStrv launch_paths_find (const gchar *text);

// Allows workers of the kind to read paths. Call from any thread.
void launch_paths_allow (GStrv paths, WorkerKind kind);
