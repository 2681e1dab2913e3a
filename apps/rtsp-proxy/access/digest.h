// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Digest authentication (RFC 7616, with MD5 as in RFC 2617) with the nonce of one connection. Many
// RTSP clients send neither qop nor nc, so both are optional. `now_us` is monotonic. The caller
// serialises the calls for one nonce.

#include "access/decision.h"
#include "config/user.h"

#define NONCE_LIFE_S 300

// The nonce of a connection. Zeroed memory is one that was not used yet.
typedef struct {
  gchar *text;
  gint64 made_us;
  guint32 count; // the highest nc that was used with it
} Nonce;

void nonce_clear (Nonce *self);

// Returns the value of a header WWW-Authenticate, for MD5 or SHA-256. `stale` says that the client
// had the right secret, but an old nonce. (transfer full)
gchar *digest_dup_challenge (Nonce *nonce, gboolean md5, gboolean stale, gint64 now_us);

typedef enum {
  DIGEST_RIGHT,
  DIGEST_STALE, // the secret is right, but the nonce is old, of another connection, or used before
  DIGEST_WRONG,
} DigestResult;

// Checks the parameters of a header Authorization. `user` may be NULL: then the result is wrong,
// after the same time.
DigestResult digest_check (GHashTable *parameters, const User *user, const AccessRequest *request,
    Nonce *nonce, gint64 now_us);
