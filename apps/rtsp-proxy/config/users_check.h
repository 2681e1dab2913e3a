// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "config/proxy_config.h"

// Checks what concerns users and the rest of the configuration together, after all mounts are
// known. Returns FALSE and sets `error` if a permission is for a path that no mount serves, or a
// user can never log in.
gboolean users_check (const ProxyConfig *self, GError **error);
