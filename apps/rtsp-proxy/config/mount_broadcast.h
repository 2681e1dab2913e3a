// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The key `broadcast`: the multicast groups on which the titles of a mount are sent, and the scheme
// that says what is sent when; or the group on which a stream is sent.

#include "broadcast/broadcast.h"
#include "config/mount_values.h"
#include "text/schema.h"

extern const SchemaObject mount_broadcast_object;

// Returns the broadcast of a mount, without groups if it has none. The texts stay those of `mount`.
BroadcastConfig mount_broadcast_get (const MountConfig *mount);

// Checks the values of the key against each other and against the upstream, when all keys of the
// mount were read. `place` is the mount, `mapping` has its keys. Returns FALSE and sets `error` if
// they do not fit.
gboolean mount_broadcast_check (const MountConfig *mount, YamlReader *reader, YamlNode *place,
    YamlNode *mapping, GError **error);

// Returns an error message if another one of `mounts` (of MountConfig) sends on a group and port of
// `mount`, else NULL. (transfer full)
gchar *mount_broadcast_find_overlap (const GPtrArray *mounts, const MountConfig *mount);
