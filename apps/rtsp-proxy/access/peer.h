// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What is known about a connection. decision.h has the functions for outlets.

#include "access/digest.h"

GInetAddress *access_peer_get_inet (AccessPeer *self); // (transfer none); 0.0.0.0 if unknown
gboolean access_peer_is_loopback (AccessPeer *self);
gboolean access_peer_is_forwarded (AccessPeer *self); // a reverse proxy names it
gboolean access_peer_has_tls (AccessPeer *self);

// digest_check() and digest_dup_challenge() with the nonce of the connection.
DigestResult access_peer_check_digest (
    AccessPeer *self, GHashTable *parameters, const User *user, const AccessRequest *request);
gchar *access_peer_dup_challenge (AccessPeer *self, gboolean md5, gboolean stale);

// Remember, and report, that credentials with this user name were right on this connection. `user`
// may be NULL.
void access_peer_set_user (AccessPeer *self, const gchar *user);
gboolean access_peer_had_user (AccessPeer *self, const gchar *user);
