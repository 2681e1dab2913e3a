// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The clients that trusted reverse proxies name: X-Forwarded-For and X-Forwarded-Proto, or
// Forwarded (RFC 7239).

#include "access/decision.h"
#include "outlets/http/http_request.h"

typedef struct _HttpProxies HttpProxies;

// Makes the set of the proxies in these networks, which trusted_networks_check() has checked; NULL:
// none.
HttpProxies *http_proxies_new (gchar *const *networks);
void http_proxies_free (HttpProxies *self);

// Sets `visitor` to the client of the request, if `from` is a trusted proxy that names one: the
// last address that is of no trusted proxy. It stays the same peer as long as the client does.
// Returns NULL, or what is wrong with the request. Call from any thread.
const gchar *http_proxies_find_client (
    const HttpProxies *self, const HttpRequest *request, GInetAddress *from, AccessPeer **visitor);
