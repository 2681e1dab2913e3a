// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The key `renditions` of a mount: what HLS players may choose between, beside the mount's own
// stream. Each is the query of a URL, such as "size=640x360&rate=600k".

#include "config/mount_values.h"
#include "text/schema.h"

#define MOUNT_RENDITIONS_MAX 7

extern const SchemaValue mount_renditions_value;

// Checks them when the stages are made. Returns what is wrong (transfer full), or NULL.
gchar *mount_renditions_check (const MountConfig *config);
