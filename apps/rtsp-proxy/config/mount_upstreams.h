// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The keys `upstream` and `upstreams`: each URI is parsed where it is read, and once.

#include "config/mount_values.h"
#include "text/schema.h"

extern const SchemaValue mount_upstreams_value;
extern const SchemaValue mount_upstreams_list_value; // another way to say it

// When all keys have been read: gives each of `pulls` what `pull` says of all of them. `upstreams`
// that were copied from another mount are parsed here. NULL, or what is wrong with one (to be
// freed).
gchar *mount_upstreams_settle (MountConfig *mount);
