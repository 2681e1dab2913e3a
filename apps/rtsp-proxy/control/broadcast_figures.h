// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The figures of the broadcasts of mounts, for the metrics and for the API.

#include "control/figures.h"
#include "mounts/mount.h"

extern const Figure broadcast_figures[]; // of a BroadcastStats

// Gets the figures of a mount. Returns FALSE if it has no broadcast.
gboolean broadcast_figures_sample (Mount *mount, gpointer stats);

// Writes the member `broadcast` of a mount that has one.
void broadcast_figures_write (JsonBuilder *builder, Mount *mount);
