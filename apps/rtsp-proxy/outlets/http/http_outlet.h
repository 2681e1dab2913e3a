// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The HTTP outlet: serves the titles of mounts as they are stored (progressive download), each at
// its own rate, and the routes of other outlets. Call from the main thread only, unless the
// function says otherwise.

#include "access/access.h"
#include "config/http_config.h"
#include "mounts/mounts.h"
#include "outlets/http/http_route.h"
#include "tls/tls_front.h"

typedef struct _HttpOutlet HttpOutlet;

// Listens. `routes` ends with one without a prefix and a suffix. `front` may be NULL if `config`
// has no listener with TLS. The other arguments must outlive the result. Returns NULL and sets
// `error` if the system refuses.
HttpOutlet *http_outlet_new (const HttpConfig *config, gchar *const *hosts, Mounts *mounts,
    Access *access, const HttpRoute *routes, TlsFront *front, GError **error);

// Returns http://ADDR:PORT and https://ADDR:PORT, with the addresses and ports in use. (transfer
// full)
GStrv http_outlet_dup_base_urls (HttpOutlet *self);

// Stops listening and closes all connections. Returns TRUE when all are closed, or FALSE after
// `timeout_ms`; then do not free the outlet.
gboolean http_outlet_stop (HttpOutlet *self, guint timeout_ms);

// Call after http_outlet_stop().
void http_outlet_free (HttpOutlet *self);
