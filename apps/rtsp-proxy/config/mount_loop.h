// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "config/listen_address.h"
#include "config/mount_config.h"

// Finds a loop of mounts that read from each other: each of them would wait for another. Returns
// the loop of `mount` ("/a, /b, /a"; the caller owns the text), or NULL. `mounts` holds
// MountConfigs. `own` says where the proxy listens, and ends with an entry without an address; port
// 0 matches no upstream.
gchar *mount_loop_find (GPtrArray *mounts, const MountConfig *mount, const ListenAddress *own);

// Reports whether an upstream of the mount leads to this proxy.
gboolean mount_loop_is_own (const MountConfig *mount, const ListenAddress *own);
