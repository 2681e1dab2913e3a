// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Whether a mount offers what is asked for of it.

#include "config/mount_config.h"
#include "text/demand.h"

// What the demand leaves for its stages to choose, or NULL; it is the demand's. FALSE and an error
// for what is wrong, or what the mount does not offer for one reader.
gboolean offer_check (
    const MountConfig *config, const Demand *demand, const gchar **choices, GError **error);

// The chain of stages (of Stage) that the demand asks for, or NULL and an error.
GPtrArray *offer_make_chain (const MountConfig *config, const gchar *choices, GError **error);
