// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "config/listen_address.h"
#include "config/mount_config.h"

// Checks a mount against the others of `mounts` (of MountConfig): it must not read from itself,
// name an input that is no mount, or send on multicast groups of another one. Returns NULL, or an
// error message that the caller owns. `own` is that of mount_loop_find().
gchar *mounts_check (GPtrArray *mounts, const MountConfig *mount, const ListenAddress *own);
