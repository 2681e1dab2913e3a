// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Decides who may use the API: clients with the token, and those that access_ask() admits. Without
// a token and without users for the API it listens on loopback only, and refuses requests from web
// pages of other sites.

#include "control/api_request.h"

typedef void (*ApiAdmitted) (Api *api, SoupServerMessage *message, const gchar *path);

// Checks a request before its body is read. Calls `next` if it is admitted, now or later; otherwise
// answers it. The request is paused meanwhile.
void api_guard_check (Api *api, SoupServerMessage *message, const gchar *path, ApiAdmitted next);

// Does not keep the body of a request that was answered before it arrived.
void api_guard_discard_body (SoupServerMessage *message);
