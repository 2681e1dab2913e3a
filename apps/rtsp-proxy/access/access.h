// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The door: decides whether a client may do what it requests. Every outlet and the API ask here
// before they start anything. The answer may take time: a password hash, an external check and the
// delay after wrong passwords hold no thread. Call from any thread, unless the function says
// otherwise.

#include "access/case.h"
#include "config/proxy_config.h"
#include "text/demand.h"

// Reads what it needs of `config`. access_configure() does so again after a reload; it applies to
// requests from then on. Both are for the main thread.
Access *access_new (const ProxyConfig *config);
void access_configure (Access *self, const ProxyConfig *config);
void access_free (Access *self);

// Asks about a request, which is copied. If the result is not pending, it is the answer, and `done`
// is not called; else `done` is called once, and `data` must be valid until then. (transfer full)
AccessCase *access_ask (
    Access *self, AccessPeer *peer, const AccessRequest *request, AccessDone done, gpointer data);

// The door of the RTSP outlet so far. For now, every client is admitted.
gboolean access_admit (
    const Demand *demand, const gchar *peer, const gchar *credentials, GError **error);
