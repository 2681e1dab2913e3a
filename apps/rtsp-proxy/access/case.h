// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A case: one request for access, with the credentials and the connection that it came with. Call
// from any thread.

#include "access/credentials.h"
#include "config/action.h"

typedef struct _Access Access;
typedef struct _AccessPeer AccessPeer;
typedef struct _AccessCase AccessCase;

// ---- a connection ----

// One connection of a client. `address` is the peer's IP address without the port, `protocol` is
// "rtsp", "rtsps", "http", "https", "srt", "rtmp" or "rtmps". A peer remembers the nonce of its
// digest challenges, so keep it as long as the connection. Reference counted.
AccessPeer *access_peer_new (const gchar *address, const gchar *protocol);
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

// Called when a case that was pending is decided, from any thread.
typedef void (*AccessDone) (AccessCase *decided, gpointer data);

AccessCase *access_case_ref (AccessCase *self);
void access_case_unref (AccessCase *self);

AccessVerdict access_case_get_verdict (AccessCase *self);

// Returns why the client was admitted. A web page can let the browser of a client ask that needs no
// secret, so the outlet must find out which page it is.
typedef enum {
  ACCESS_BY_SECRET,  // it sent the right credentials
  ACCESS_BY_ADDRESS, // it has the right address
  ACCESS_BY_NOTHING, // everybody may
} AccessBasis;

AccessBasis access_case_get_basis (AccessCase *self);

// Reports whether access_ask() returned the case undecided, so that `done` is or was called.
gboolean access_case_is_later (AccessCase *self);

// Returns the values of WWW-Authenticate headers, in order, for ACCESS_ASKED. (transfer none)
const gchar *const *access_case_get_challenges (AccessCase *self);

// Returns the name of the user whose credentials were right, admitted or not; NULL before that, and
// for a client without a name. (transfer none)
const gchar *access_case_get_user (AccessCase *self);

// Returns who the client is for its later connections: its name, or else its address. (transfer
// full)
gchar *access_case_dup_identity (AccessCase *self);

// Returns why no decision is possible, for ACCESS_BUSY. (static)
const gchar *access_case_get_reason (AccessCase *self);

// For a decided request that `lists`: reports whether the client may do the action on a mount, and
// why.
gboolean access_case_lists (AccessCase *self, const gchar *mount, AccessBasis *basis);

// ---- for judges ----

const AccessRequest *access_case_get_request (AccessCase *self);
const Credentials *access_case_get_credentials (AccessCase *self);

const gchar *access_peer_get_address (AccessPeer *self);
const gchar *access_peer_get_protocol (AccessPeer *self);
const gchar *access_peer_get_id (AccessPeer *self); // random; names the connection
AccessPeer *access_case_get_peer (AccessCase *self);

// Reports whether the client wants media, over whatever protocol, rather than the API or metrics.
gboolean access_case_is_for_media (AccessCase *self);

// Reports whether the client may send its password unencrypted, or uses TLS. If not, a judge gets
// no basic credentials.
gboolean access_case_may_use_basic (AccessCase *self);

// Reports whether the client comes through a reverse proxy with TLS. Its requests may come over
// other connections, to which the nonce of a digest does not belong.
gboolean access_case_has_front (AccessCase *self);

// Reports whether a judge has said JUDGE_RENEWS.
gboolean access_case_is_stale (AccessCase *self);

// Keep something with a case until it is freed, for `lists` of judge.h. The judge sets it before it
// gives its judgement.
void access_case_set_grant (AccessCase *self, gpointer grant, GDestroyNotify free_grant);
gpointer access_case_get_grant (AccessCase *self);
