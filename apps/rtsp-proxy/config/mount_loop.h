// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "config/mount_config.h"

// A mount may take from another of the same proxy, but not in a circle, in which each would wait
// for the other. NULL, or the circle that this one is in ("/a, /b, /a"; to be freed). `mounts`: of
// MountConfig; `address` and `port`: where the proxy listens.
gchar *mount_loop_find (
    GPtrArray *mounts, const MountConfig *mount, const gchar *address, guint16 port);
