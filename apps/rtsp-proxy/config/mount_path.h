// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Paths of mounts, such as /cam.

#include "text/schema.h"

// Returns NULL if `path` is a valid path of a mount, or an error message that the caller owns.
gchar *mount_check_path (const gchar *path);

// For the row of a key whose items are paths.
gchar *mount_path_check (SchemaText *it);
