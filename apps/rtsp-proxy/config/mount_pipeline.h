// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The keys `pipeline` and `choices`: read as they are written. What their stages are, and whether
// they fit, mount_stages.h finds out.

#include "config/mount_values.h"
#include "text/schema.h"

extern const SchemaValue mount_pipeline_value;
extern const SchemaValue mount_choices_value;
