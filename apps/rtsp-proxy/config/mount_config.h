// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What one mount is told to do. Counted, and never changed once it is checked: threads that hold
// one need no lock. What reads it from text is mount_read.c; its keys are in mount_keys.c.

#include "config/mount_values.h"

MountConfig *mount_config_new (const gchar *path); // with the defaults
MountConfig *mount_config_ref (MountConfig *self);
void mount_config_unref (MountConfig *self);

// One to be changed, without `pulls` and `stages`.
MountConfig *mount_config_copy (const MountConfig *self);

gboolean mount_config_equal (const MountConfig *a, const MountConfig *b);

// The names of the keys in which they differ; to be freed with g_ptr_array_unref().
GPtrArray *mount_config_differences (const MountConfig *a, const MountConfig *b);

// What the keys in which they differ do to a mount that runs.
MountEffect mount_config_get_effect (const MountConfig *from, const MountConfig *to);

// The folder whose files it serves; NULL for a mount of one stream.
const gchar *mount_config_get_folder (const MountConfig *self);
