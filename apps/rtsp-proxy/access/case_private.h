// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The peers and cases of the door.

#include "access/case.h"

struct _AccessPeer {
  gint refs;
  gchar *address, *protocol, *id;
};

struct _AccessCase {
  gint refs;
  Access *access;
  AccessPeer *peer;
  AccessRequest request; // with texts of its own
  Credentials credentials;
  AccessDone done;
  gpointer data;

  GMutex lock;
  guint judge;           // asked now
  gboolean is_later;     // access_ask() has returned
  AccessVerdict verdict; // set once
  GPtrArray *challenges; // of gchar *, ends with NULL
  gchar *user;
};

// Returns a case with the verdict ACCESS_PENDING.
AccessCase *access_case_new (
    Access *access, AccessPeer *peer, const AccessRequest *request, AccessDone done, gpointer data);
