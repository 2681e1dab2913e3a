// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Access control. An outlet asks once for each request, after it has resolved the demand and before
// it starts anything. Call from any thread.

#include "text/demand.h"

// Returns FALSE and sets `error` if the client may not have the demand's target. `peer` is the
// client's address, such as "127.0.0.1:5004". `credentials` is the header Authorization of an RTSP
// request, or NULL. For now, every client is admitted.
gboolean access_admit (
    const Demand *demand, const gchar *peer, const gchar *credentials, GError **error);
