// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "access/access.h"

// Does the same as access_ask() for a client whose protocol has no headers: `user` and `secret`
// take the place of `authorization`, which must be NULL. Both may be NULL.
AccessDecision *access_ask_plain (Access *self, AccessPeer *peer, const AccessRequest *request,
    const gchar *user, const gchar *secret, AccessDone done, gpointer data);
