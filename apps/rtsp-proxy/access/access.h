// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Who may have what. Each outlet asks once a request, when it is known that there is such a thing
// and before it is started. Any thread.

#include "text/demand.h"

// `peer`: "127.0.0.1:5004". `credentials`: as the request carries them, RTSP's header
// Authorization; NULL: none. FALSE and an error. Everybody may have everything, so far.
gboolean access_admit (
    const Demand *demand, const gchar *peer, const gchar *credentials, GError **error);
