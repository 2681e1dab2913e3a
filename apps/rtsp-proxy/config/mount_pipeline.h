// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The keys `pipeline`, `source-stages` and `choices`, as written. mount_stages.h looks up and
// checks their stages.

#include "config/mount_values.h"
#include "text/schema.h"

extern const SchemaValue mount_pipeline_value;
extern const SchemaValue mount_source_stages_value;
extern const SchemaValue mount_choices_value;
