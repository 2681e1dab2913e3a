// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Keeps a key set up to date: reads its file or URL every hour, and when a token names a key that
// the set lacks. If that fails, the old keys stay. Call from the main thread only, unless the
// function says otherwise.

#include "base/http_client.h"
#include "text/jwks.h"

typedef struct _JwksSource JwksSource;

// `where` is a file or an http(s) URL. `keys` are those that it is known to hold, or NULL: then the
// source loads them now. `http` must outlive the source. `quiet_ms` is the shortest time between
// two loads.
JwksSource *jwks_source_new (const gchar *where, Jwks *keys, HttpClient *http, guint quiet_ms);

// Functions that wait are called first.
void jwks_source_free (JwksSource *self);

// Returns the newest keys, or NULL if there are none yet. Call from any thread. (transfer full)
Jwks *jwks_source_dup_keys (JwksSource *self);

// Calls `done` with `data` on the main thread after the keys were loaded again, with success or
// not. Returns FALSE and does not call it if they were loaded a moment ago. Call from any thread.
gboolean jwks_source_load (JwksSource *self, GFunc done, gpointer data);
