// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The key `swarm`: how the titles of a folder of torrents are fetched and given to peers.

#include "config/mount_values.h"
#include "text/schema.h"

extern const SchemaObject mount_swarm_object;

// Returns names and values of swarmsrc's properties in turn. (transfer full)
GStrv mount_swarm_dup_properties (const MountConfig *mount);

// Reports whether titles stay in the swarm when nobody reads them.
gboolean mount_swarm_seeds (const MountConfig *mount);
