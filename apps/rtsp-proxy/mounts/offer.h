// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Checks whether a mount offers a demand.

#include "config/mount_config.h"
#include "config/proxy_config.h"
#include "text/demand.h"

// Sets whether a parameter that a mount does not offer is an error: `strict-queries` of the
// configuration. It is ignored otherwise. Call from any thread.
void offer_set_strict (gboolean strict);
gboolean offer_is_strict (void);

// Sets what the configuration says about the requests to all mounts: this, `file-roots` and
// `trusted-networks`. Call from the main thread.
void offer_configure (const ProxyConfig *config);

// Returns FALSE and sets `error` if a value of the demand is wrong, or if readers of the mount
// cannot choose it. Otherwise sets `choices` to the demand's choices for the mount's stages (owned
// by the demand; may be NULL).
gboolean offer_check (
    const MountConfig *config, const Demand *demand, const gchar **choices, GError **error);

// Returns what counts of the choices: all with strict queries, else without unknown parameters;
// NULL if nothing is left. (transfer full)
gchar *offer_dup_choices (const MountConfig *config, const gchar *choices);

// Returns the chain of stages (of Stage) for these choices, or NULL and an error. (transfer full)
GPtrArray *offer_make_chain (const MountConfig *config, const gchar *choices, GError **error);
