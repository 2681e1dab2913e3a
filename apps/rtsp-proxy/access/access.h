// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Access control. An outlet asks once for each request, after it has resolved the demand and before
// it starts anything. Call from any thread.

#include "text/demand.h"

// Reports whether the client may have the demand's target; sets `error` if not. `peer` is an
// address such as "127.0.0.1:5004". `credentials` are those of the request (RTSP: the header
// Authorization), or NULL. So far it admits everybody.
gboolean access_admit (
    const Demand *demand, const gchar *peer, const gchar *credentials, GError **error);
