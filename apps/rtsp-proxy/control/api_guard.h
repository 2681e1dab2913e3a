// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Who may ask: whoever names the token, and, where there is none because it is on loopback, no page
// of another site that a browser of this machine shows.

#include "control/api_request.h"

// FALSE, and it is answered: this one may not. Asked before the body is read.
gboolean api_guard_admit (Api *api, SoupServerMessage *message);
