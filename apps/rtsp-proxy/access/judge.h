// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A judge knows one kind of credentials: the users of the configuration, signed tokens, or an
// external check. access_ask() asks its judges in the order in which they were added, until one
// does not pass.

#include "access/case.h"
#include "config/proxy_config.h"

// The reason for wrong passwords, in the log and the metrics.
#define WRONG_PASSWORD "wrong password"

typedef enum {
  JUDGE_PASSES,         // these credentials are not of this judge's kind: ask the next one
  JUDGE_ADMITS,         // the client may, because of its credentials
  JUDGE_ADMITS_ADDRESS, // the client may because of its address, whatever it sends
  JUDGE_ADMITS_ANYBODY, // everybody may
  JUDGE_FORBIDS,        // the credentials are right, but do not permit this: 403
  JUDGE_DENIES,         // the credentials are wrong: 401, and the address is slowed down
  JUDGE_RENEWS,         // the credentials are too old, but were right: 401
  JUDGE_FAILS,          // no decision is possible now: 503
} Judgement;

typedef struct {
  // Calls access_case_judge() once, before it returns or later, from any thread. The case stays
  // valid until then.
  void (*ask) (gpointer judge, AccessCase *asked);
  // Appends the challenges by which a client may bring credentials of this kind: values of
  // WWW-Authenticate, (transfer full). May be NULL.
  void (*challenge) (gpointer judge, AccessCase *asked, GPtrArray *lines);
  // For a request that `lists`: judges the action on a mount. `admitted` says that this judge has
  // admitted the client; otherwise only what its address or anybody may do counts. Returns a
  // judgement that admits, or JUDGE_PASSES. May be NULL.
  Judgement (*lists) (gpointer judge, AccessCase *asked, gboolean admitted, const gchar *mount);
  // Reads the configuration again. Called on the main thread. May be NULL.
  void (*configure) (gpointer judge, const ProxyConfig *config);
  void (*free) (gpointer judge);
} JudgeOps;

// Adds a judge. `ops` must be static. Called by access_new() only.
void access_add_judge (Access *self, const JudgeOps *ops, gpointer judge);

// Gives the judgement. `user` is the name that the client gave, or NULL; `reason` is a static text
// for the log and the metrics, such as "wrong password", or NULL for JUDGE_ADMITS. Both are for
// JUDGE_PASSES ignored.
void access_case_judge (
    AccessCase *self, Judgement judgement, const gchar *user, const gchar *reason);
