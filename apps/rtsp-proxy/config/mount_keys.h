// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The table of a mount's keys: allowed values, default, meaning, and the effect of a change on a
// running mount.

#include "config/mount_values.h"
#include "text/schema.h"

extern const gchar *const mount_effect_words[]; // by MountEffect
extern const gchar *const mount_adapt_names[];  // by MountAdapt

// Returns the table, in the order in which keys are read and documented.
const SchemaKey *mount_config_keys (void);
