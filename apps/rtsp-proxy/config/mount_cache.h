// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The key `cache`: how far back readers can go, and where that lies.

#include "config/mount_values.h"
#include "text/schema.h"

extern const SchemaValue mount_cache_value;
