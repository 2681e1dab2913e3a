// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A decision about one request for access, with the credentials and the connection that it came
// with. Call from any thread.

#include "access/credentials.h"
#include "config/action.h"

typedef struct _Access Access;
typedef struct _AccessPeer AccessPeer;
typedef struct _AccessDecision AccessDecision;

// ---- a connection ----

// One connection of a client. `address` is the peer's IP address without the port, `protocol` is
// "rtsp", "rtsps", "http", "https", "srt", "rtmp" or "rtmps". A peer remembers the nonce of its
// digest challenges, so keep it as long as the connection. Reference counted.
AccessPeer *access_peer_new (const gchar *address, const gchar *protocol);
// The same for a client that a trusted reverse proxy names. Its requests may come over other
// connections, to which the nonce of a digest does not belong.
AccessPeer *access_peer_new_forwarded (const gchar *address, const gchar *protocol);
AccessPeer *access_peer_ref (AccessPeer *self);
void access_peer_unref (AccessPeer *self);

// ---- a request ----

// What a client wants, and its credentials. Texts may be NULL unless the comment says otherwise.
typedef struct {
  AccessAction action;
  const gchar *path;   // never NULL: "/cam", "/films/a.mp4"; for HTTP the path of the URL
  const gchar *mount;  // the path of the mount that serves it; NULL if none does, and for HTTP
  const gchar *prefix; // static: of the URL, with which `path` follows, such as "/hls/"; or NULL
  const gchar *query;  // without the token
  const gchar *user_agent;
  const gchar *method;        // of the request, such as "DESCRIBE"
  const gchar *authorization; // the header
  const gchar *token;         // of the query
  gboolean lists; // asks for a list of mounts that the client may have; `path` is that of the list
} AccessRequest;

typedef enum {
  ACCESS_PENDING,  // not decided yet
  ACCESS_ADMITTED, // the client may
  ACCESS_ASKED,    // 401: send the challenges
  ACCESS_REFUSED,  // 403
  ACCESS_BUSY,     // 503: too many requests of this address wait, or no decision is possible now
} AccessVerdict;

// Called when a pending decision is made, from any thread.
typedef void (*AccessDone) (AccessDecision *decided, gpointer data);

AccessDecision *access_decision_ref (AccessDecision *self);
void access_decision_unref (AccessDecision *self);

AccessVerdict access_decision_get_verdict (AccessDecision *self);

// Returns why the client was admitted. A web page can let the browser of a client ask that needs no
// secret, so the outlet must find out which page it is.
typedef enum {
  ACCESS_BY_SECRET,  // it sent the right credentials
  ACCESS_BY_ADDRESS, // it has the right address
  ACCESS_BY_NOTHING, // everybody may
} AccessBasis;

AccessBasis access_decision_get_basis (AccessDecision *self);

// Reports whether access_ask() returned without the answer, so that `done` is or was called.
gboolean access_decision_is_later (AccessDecision *self);

// Returns the values of WWW-Authenticate headers, in order, for ACCESS_ASKED. (transfer none)
const gchar *const *access_decision_get_challenges (AccessDecision *self);

// Returns the name of the user whose credentials were right, admitted or not; NULL before that, and
// for a client without a name. (transfer none)
const gchar *access_decision_get_user (AccessDecision *self);

// Returns who the client is for its later connections: its name, or else its address. (transfer
// full)
gchar *access_decision_dup_identity (AccessDecision *self);

// Returns why no decision is possible, for ACCESS_BUSY. (static)
const gchar *access_decision_get_reason (AccessDecision *self);

// For a decided request that `lists`: reports whether the client may do the action on a mount, and
// why.
gboolean access_decision_lists (AccessDecision *self, const gchar *mount, AccessBasis *basis);

// ---- for authenticators ----

const AccessRequest *access_decision_get_request (AccessDecision *self);
const Credentials *access_decision_get_credentials (AccessDecision *self);

const gchar *access_peer_get_address (AccessPeer *self);
const gchar *access_peer_get_protocol (AccessPeer *self);
const gchar *access_peer_get_id (AccessPeer *self); // random; names the connection
AccessPeer *access_decision_get_peer (AccessDecision *self);

// Reports whether the client wants media, over whatever protocol, rather than the API or metrics.
gboolean access_decision_is_for_media (AccessDecision *self);

// Reports whether the client may send its password unencrypted, or uses TLS. If not, an
// authenticator gets no basic credentials.
gboolean access_decision_may_use_basic (AccessDecision *self);

// Reports whether the client comes through a reverse proxy with TLS. Its requests may come over
// other connections, to which the nonce of a digest does not belong.
gboolean access_decision_has_front (AccessDecision *self);

// Reports whether an authenticator has said AUTH_RENEWS.
gboolean access_decision_is_stale (AccessDecision *self);

// Keep something with a decision until it is freed, for `lists` of authenticator.h. The
// authenticator sets it before it gives its answer.
void access_decision_set_grant (AccessDecision *self, gpointer grant, GDestroyNotify free_grant);
gpointer access_decision_get_grant (AccessDecision *self);
