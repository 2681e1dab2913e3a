// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The configuration of one mount. It is reference-counted and never changes after it is checked, so
// threads that hold a reference need no lock. mount_read.h reads it; mount_keys.h has its keys.

#include "config/mount_pulls.h"
#include "config/mount_values.h"

// Makes a configuration with the defaults. The caller owns the reference.
MountConfig *mount_config_new (const gchar *path);
MountConfig *mount_config_ref (MountConfig *self);
void mount_config_unref (MountConfig *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MountConfig, mount_config_unref)

// Returns a copy that may be changed, without `pulls` and `stages`. The caller owns the reference.
MountConfig *mount_config_copy (const MountConfig *self);

// Reports whether paths and all keys are equal.
gboolean mount_config_equal (const MountConfig *a, const MountConfig *b);

// Returns the names of the keys that differ (const gchar *). The caller owns the array.
GPtrArray *mount_config_differences (const MountConfig *a, const MountConfig *b);

// Returns the strongest effect of the changed keys on a running mount.
MountEffect mount_config_get_effect (const MountConfig *from, const MountConfig *to);

// Reports whether both broadcast alike: the stream, or the titles of the same store.
gboolean mount_config_same_broadcast (const MountConfig *a, const MountConfig *b);
