// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Serves live presentations to HTTP clients as MPEG transport streams. It is a route of the HTTP
// outlet: after the head of the answer, the presentation's stream writes to the client's socket.

#include "mounts/mounts.h"
#include "outlets/http/http_route.h"

// Returns the route of its URLs. `mounts` must outlive the HTTP outlet.
HttpRoute ts_outlet_get_route (Mounts *mounts);
