// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The figures of the disks of block stores, for the metrics and for the API.

#include "control/figures.h"
#include "mounts/mount.h"

#define DISK_FIGURES_MAX 64 // disks of a mount

extern const Figure disk_figures[]; // of a StoreDisk

// Gives up to DISK_FIGURES_MAX disks of a mount, and returns their number: 0 if it has no block
// store, or if nobody has read from it yet.
guint disk_figures_sample (Mount *mount, StoreDisk disks[DISK_FIGURES_MAX]);

// Writes the member `disks` of a mount that has any.
void disk_figures_write (JsonBuilder *builder, Mount *mount);
