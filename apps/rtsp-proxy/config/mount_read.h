// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads a mount's keys, and checks what they say together.

#include "config/mount_config.h"
#include "text/schema.h"

// NULL, or why a mount can't have this path (to be freed).
gchar *mount_check_path (const gchar *path);

// The keys of a mapping; makes `pulls` and `stages`. Errors are about `place` where they have no
// better one.
gboolean mount_read (MountConfig *mount, StageSet *set, YamlReader *reader, YamlNode *place,
    YamlNode *mapping, SchemaMode mode, GError **error);

// A mount as the API takes it: a mapping, over `base` where that is there (null gives a key its
// default again). NULL, and what is wrong.
MountConfig *mount_read_body (
    StageSet *set, const gchar *path, YamlReader *body, const MountConfig *base, GError **error);

// A mount of one upstream and no other key. NULL, or what is wrong (to be freed).
gchar *mount_read_uri (MountConfig *mount, StageSet *set, const gchar *uri);
