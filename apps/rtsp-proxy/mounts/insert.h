// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Clips that are inserted into the stream of a mount. Call from the main thread only.

#include "graph/insertion.h"
#include "mounts/mount.h"

// Gets NULL when the clip is planned; else what is wrong: G_IO_ERROR_NOT_FOUND, there is no such
// clip; G_IO_ERROR_INVALID_ARGUMENT, the plan is wrong; any other, the mount cannot take it now.
typedef void (*InsertDone) (gpointer data, const GError *wrong);

// Plans a clip for the mount; `plan->folder` is not used. The mount's upstream runs until the
// insertion is over. Calls `done` once, perhaps before it returns.
void mount_insert (Mount *self, const InsertionPlan *plan, InsertDone done, gpointer data);

// Returns the insertion that is planned or runs, or NULL.
Insertion *mount_find_insertion (Mount *self);
