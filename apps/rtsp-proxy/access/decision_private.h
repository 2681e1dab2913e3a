// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The decisions of access_ask().

#include "access/decision.h"

struct _AccessDecision {
  gint refs;
  Access *access;
  AccessPeer *peer;
  AccessRequest request; // with texts of its own
  Credentials credentials;
  AccessDone done;
  gpointer data;
  gboolean has_credentials; // of any kind
  gboolean may_use_basic;
  gboolean has_front;  // comes through a reverse proxy
  gboolean is_entered; // in the throttle
  gboolean is_stale;   // the credentials were right, but are too old
  AccessBasis basis;   // set before the verdict
  const gchar *reason; // for ACCESS_BUSY; static
  gpointer grant;      // of the authenticator that admits; freed by `free_grant`
  GDestroyNotify free_grant;
  guint authenticator; // asked now
  guint timer;         // while it waits; protected by the lock of Access

  GMutex lock;           // protects the fields below
  gboolean is_later;     // access_ask() has returned
  AccessVerdict verdict; // set once
  GPtrArray *challenges; // of gchar *, ends with NULL
  gchar *user;
};

// Returns a decision with the verdict ACCESS_PENDING.
AccessDecision *access_decision_new (
    Access *access, AccessPeer *peer, const AccessRequest *request, AccessDone done, gpointer data);
