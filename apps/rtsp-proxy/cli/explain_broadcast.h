// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "config/mount_config.h"

// Returns comments on the broadcast of a mount: how long clients wait, and for some lengths of
// titles, how many groups and how much of the line its scheme needs. (transfer full)
gchar *explain_broadcast (const MountConfig *mount);
