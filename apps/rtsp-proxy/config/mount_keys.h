// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The table of a mount's keys. A key is one row of it: what it may be, what it is by default, what
// a change of it does to a mount that runs, and what it means.

#include "config/mount_values.h"
#include "text/schema.h"

extern const gchar *const mount_effect_words[]; // by MountEffect
extern const gchar *const mount_adapt_names[];  // by MountAdapt

// In the order in which they are read and told.
const SchemaKey *mount_config_keys (void);
