// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The mounts that a pattern makes (mount_pattern.h), and what a pattern may say.

#include "config/mount_config.h"

// Returns the configuration of the mount with this path, which keeps a reference on the pattern; or
// NULL if the pattern does not match, a host is none of its `hosts`, or the upstream cannot be
// used. (transfer full)
MountConfig *mount_instance_new (const MountConfig *pattern, const gchar *path);

// Returns why the keys of a pattern do not go together (static), and the key; or NULL.
const gchar *mount_instance_find_wrong (const MountConfig *pattern, const gchar **key);
