// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The figures of titles of swarms: of each title for the API, and of all of a mount for the
// metrics.

#include "control/figures.h"
#include "mounts/mount.h"

extern const Figure swarm_figures[]; // of a StoreSwarmTitle

// Sets the sums of a mount's titles. Returns FALSE if the mount has no swarm.
gboolean swarm_figures_sum (Mount *mount, gpointer sum);

// Writes the member `swarm` of a mount that has torrents: its titles in the swarm.
void swarm_figures_write (JsonBuilder *builder, Mount *mount);
