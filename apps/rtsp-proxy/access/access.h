// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Decides whether a client may do what it requests. Every outlet and the API ask here
// before they start anything. The answer may take time: a password hash, an external check and the
// delay after wrong passwords hold no thread. Call from any thread, unless the function says
// otherwise.

#include "access/decision.h"
#include "config/proxy_config.h"

// Reads what it needs of `config`. access_configure() does so again after a reload; it applies to
// requests from then on. Both are for the main thread.
Access *access_new (const ProxyConfig *config);
void access_configure (Access *self, const ProxyConfig *config);

// Reports whether HTTP clients must be asked about before they do `action`, ACCESS_API or
// ACCESS_METRICS; see proxy_config_guards().
gboolean access_is_guarded (Access *self, AccessAction action);

// Reports whether any authenticator takes credentials.
gboolean access_takes_credentials (Access *self);

// Logs and counts a refusal that the caller has decided. `reason` must be static.
void access_note_refusal (
    Access *self, AccessPeer *peer, AccessAction action, const gchar *path, const gchar *reason);

// Answers all requests that wait, and all later ones, with ACCESS_BUSY. Main thread only.
void access_close (Access *self);
void access_free (Access *self);

// Asks about a request, which is copied. If access_decision_is_later() is FALSE for the result, it
// is decided, and `done` is not called. Otherwise `done` is called once, perhaps before this
// returns, and `data` must be valid until then. (transfer full)
AccessDecision *access_ask (
    Access *self, AccessPeer *peer, const AccessRequest *request, AccessDone done, gpointer data);

// ---- counts ----

typedef struct {
  const gchar *reason; // static
  guint64 n;
} AccessRefusals;

// Counts of decided requests since the start, and the numbers of requests that wait now and of
// addresses that are slowed down or logged.
typedef struct {
  guint64 admitted, challenged;
  guint waiting, addresses;
  GArray *refused; // of AccessRefusals, by reason
} AccessCounts;

// Free `counts->refused` with g_array_unref().
void access_get_counts (Access *self, AccessCounts *counts);
