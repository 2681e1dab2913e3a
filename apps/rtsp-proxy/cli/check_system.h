// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "config/proxy_config.h"

// Returns the text that --check-system prints, which the caller owns; `*binds` says whether a limit
// binds. `expect` is the value of --expect; NULL: the defaults. Returns NULL and sets `error` if it
// is wrong.
gchar *check_system (
    const ProxyConfig *config, const gchar *expect, gboolean *binds, GError **error);
