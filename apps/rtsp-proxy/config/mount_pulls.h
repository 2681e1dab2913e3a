// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the upstreams of a mount are.

#include "config/mount_values.h"
#include "sources/pull_titles.h"

// Returns where the titles of the mount are, or NONE for a mount of one stream.
PullTitles mount_config_get_titles (const MountConfig *self);

// Returns the folder, store or URL of the titles, or NULL for a mount of one stream.
const gchar *mount_config_get_folder (const MountConfig *self);

// Reports whether an API client has named the first upstream (base/file_roots.h).
gboolean mount_config_is_limited (const MountConfig *self);

// Reports whether clients may publish to the mount: one of its upstreams is `publish`.
gboolean mount_config_awaits (const MountConfig *self);

// Reports whether publishers may send several layers: readers may choose between them.
gboolean mount_config_takes_layers (const MountConfig *self);
