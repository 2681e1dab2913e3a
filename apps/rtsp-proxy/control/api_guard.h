// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Decides who may use the API: clients with the token. Without a token the API listens on loopback
// only, and refuses requests from web pages of other sites.

#include "control/api_request.h"

// Returns FALSE after it has answered a request that is refused. Call before the body is read.
gboolean api_guard_admit (Api *api, SoupServerMessage *message);
