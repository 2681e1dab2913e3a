// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The list of live mounts that a visitor may read: access is asked for one after another.

#include "access/access.h"
#include "outlets/http/http_route.h"

// Call from any thread.
HttpReply *page_list_new (Mounts *mounts, Access *access, const HttpAsked *asked);
