// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The permissions in the claims of a token: a list of {"action": ..., "path": ...}, or that list as
// a string. Call from any thread.

#include <json-glib/json-glib.h>

#include "config/action.h"

// Reports whether the list in `claim` permits an action. `path` is "/cam"; `mount` is the path of
// the mount that serves it, or NULL. A path of the list is one as in the configuration of users; or
// as MediaMTX writes it, without the leading slash: "cam", "~^cam" (a regular expression), ""
// (all).
gboolean jwt_permits (JsonObject *claims, const gchar *claim, AccessAction action,
    const gchar *path, const gchar *mount);
