// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The keys `upstream` and `upstreams`. Each URI is parsed once, when the key is read.

#include "config/mount_values.h"
#include "text/schema.h"

extern const SchemaValue mount_upstreams_value;
extern const SchemaValue mount_upstreams_list_value; // sets the same value

// Copies the settings in `pull` into each of `pulls`. Call after all keys were read. Parses
// `upstreams` first if they were copied from another mount. Returns NULL, or an error message that
// the caller owns.
gchar *mount_upstreams_apply (MountConfig *mount);
