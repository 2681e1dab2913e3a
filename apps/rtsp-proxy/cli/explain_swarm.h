// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What --explain says of a folder of torrents.

#include "config/mount_config.h"

// Returns comments on where the titles come from and who gets them. (transfer full)
gchar *explain_swarm (const MountConfig *mount);
