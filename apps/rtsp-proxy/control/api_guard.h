// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Decides who may use the API: clients with the token. Without a token the API listens on loopback
// only, and refuses requests from web pages of other sites.

#include "control/api_request.h"

// Checks a request before its body is read. Answers it and returns FALSE if it is refused.
gboolean api_guard_admit (Api *api, SoupServerMessage *message);
