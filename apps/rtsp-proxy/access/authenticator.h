// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// An authenticator knows one kind of credentials: the users of the configuration, signed tokens, or
// an external check. access_ask() asks its authenticators in the order in which they were added,
// until one does not pass.

#include "access/decision.h"
#include "config/proxy_config.h"

// The reason for wrong passwords, in the log and the metrics.
#define WRONG_PASSWORD "wrong password"

typedef enum {
  AUTH_PASSES,         // these credentials are not of this authenticator's kind: ask the next one
  AUTH_ADMITS,         // the client may, because of its credentials
  AUTH_ADMITS_ADDRESS, // the client may because of its address, whatever it sends
  AUTH_ADMITS_ANYBODY, // everybody may
  AUTH_FORBIDS,        // the credentials are right, but do not permit this: 403
  AUTH_DENIES,         // the credentials are wrong: 401, and the address is slowed down
  AUTH_RENEWS,         // the credentials are too old, but were right: 401
  AUTH_FAILS,          // no decision is possible now: 503
} AuthAnswer;

typedef struct {
  // Calls access_decision_answer() once, before it returns or later, from any thread. The decision
  // stays valid until then.
  void (*ask) (gpointer authenticator, AccessDecision *asked);
  // Appends the challenges by which a client may bring credentials of this kind: values of
  // WWW-Authenticate, (transfer full). May be NULL.
  void (*challenge) (gpointer authenticator, AccessDecision *asked, GPtrArray *lines);
  // For a request that `lists`: decides about the action on a mount. `admitted` says that this
  // authenticator has admitted the client; otherwise only what its address or anybody may do
  // counts. Returns an answer that admits, or AUTH_PASSES. May be NULL.
  AuthAnswer (*lists) (
      gpointer authenticator, AccessDecision *asked, gboolean admitted, const gchar *mount);
  // Reads the configuration again. Called on the main thread. May be NULL.
  void (*configure) (gpointer authenticator, const ProxyConfig *config);
  void (*free) (gpointer authenticator);
} AuthenticatorOps;

// Adds an authenticator. `ops` must be static. Called by access_new() only.
void access_add_authenticator (Access *self, const AuthenticatorOps *ops, gpointer authenticator);

// Gives the answer. `user` is the name that the client gave, or NULL; `reason` is a static text
// for the log and the metrics, such as "wrong password", or NULL for AUTH_ADMITS. Both are for
// AUTH_PASSES ignored.
void access_decision_answer (
    AccessDecision *self, AuthAnswer answer, const gchar *user, const gchar *reason);
