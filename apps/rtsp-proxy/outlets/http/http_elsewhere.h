// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Whether a new reader over HTTP is sent to another member of the cluster.

#include "mounts/mounts.h"
#include "outlets/http/http_route.h"

// Returns the URL to which an admitted request is sent (transfer full), or NULL: it is answered
// here. `route` is NULL for a title. Call from any thread.
gchar *http_elsewhere_dup_url (const HttpRoute *route, const HttpRequest *request,
    const Demand *demand, const Resolved *resolved, AccessPeer *visitor);
