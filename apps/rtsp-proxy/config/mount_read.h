// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads a mount's configuration from YAML or from an argument, and checks it as a whole.

#include "config/mount_config.h"
#include "config/mount_path.h"
#include "text/schema.h"

// Reads the keys of `mapping` into `mount`, and makes `pulls` and `stages`. Errors without a place
// of their own are reported at `place`. Returns FALSE and sets `error` if anything is wrong.
gboolean mount_read (MountConfig *mount, StageSet *set, YamlReader *reader, YamlNode *place,
    YamlNode *mapping, SchemaMode mode, GError **error);

// Reads a mount of the file. Unless `strict`, a mount that only lacks something of this machine is
// no error: `*mount` becomes one that is down for this reason, without what else the file says.
gboolean mount_read_file (MountConfig **mount, gboolean strict, StageSet *set, YamlReader *reader,
    YamlNode *place, YamlNode *mapping, GError **error);

// Reads a mount from the body of an API request. With `base`, changes only the keys in the body;
// the value null restores a key's default. The caller owns the result. Returns NULL and sets
// `error` if anything is wrong.
MountConfig *mount_read_body (
    StageSet *set, const gchar *path, YamlReader *body, const MountConfig *base, GError **error);

// Configures a mount with one upstream and defaults otherwise. Returns NULL, or an error message
// that the caller owns.
gchar *mount_read_uri (MountConfig *mount, StageSet *set, const gchar *uri);
