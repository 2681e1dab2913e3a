// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "config/mount_config.h"

// Finds a loop of mounts that read from each other: each of them would wait for another. Returns
// the loop of `mount` ("/a, /b, /a"; the caller owns the text), or NULL. `mounts` holds
// MountConfigs; the proxy listens on `address` and `port`.
gchar *mount_loop_find (
    GPtrArray *mounts, const MountConfig *mount, const gchar *address, guint16 port);
