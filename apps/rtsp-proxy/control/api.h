// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The control API: HTTP and JSON under /v1, and /metrics. Main thread only.

#include "control/reload.h"

typedef struct _Api Api;

// Listens; NULL and an error if it can't. `server` and `reload` must outlive it.
Api *api_new (const ProxyConfig *config, Server *server, Reload *reload, GError **error);
void api_free (Api *self);

// http://ADDR:PORT as listened on.
gchar *api_dup_base_url (Api *self);
