// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "config/mount_config.h"

// A mount may read from another mount of the same proxy, but not in a loop, in which each would
// wait for the other. Returns NULL, or the loop that `mount` is in ("/a, /b, /a"; the caller owns
// the text). `mounts` holds MountConfigs; the proxy listens on `address` and `port`.
gchar *mount_loop_find (
    GPtrArray *mounts, const MountConfig *mount, const gchar *address, guint16 port);
