// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The key `cache`: the window from which readers of a mount are served, and where it is stored.

#include "config/mount_values.h"
#include "text/schema.h"

extern const SchemaObject mount_cache_object;

#define MOUNT_CACHE_EXPECTED "expected {time: TIME}, such as {time: 60s, bytes: 64M}"
