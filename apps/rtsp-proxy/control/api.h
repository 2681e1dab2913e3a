// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The control API: HTTP and JSON under /v1, and /metrics. Call from the main thread only.

#include "cluster/cluster.h"
#include "control/reload.h"

typedef struct _Api Api;

// Starts to listen. Returns NULL and sets `error` on failure. `proxy`, `reload` and `cluster`,
// which may be NULL, must outlive the result.
Api *api_new (
    const ProxyConfig *config, Proxy *proxy, Reload *reload, Cluster *cluster, GError **error);
void api_free (Api *self);

// Returns http://ADDR:PORT or https://ADDR:PORT with the address and port in use. (transfer full)
gchar *api_dup_base_url (Api *self);
