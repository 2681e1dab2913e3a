// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// JSON Web Tokens (RFC 7519): signed claims in the compact form HEADER.CLAIMS.SIGNATURE. Call from
// any thread.

#include <json-glib/json-glib.h>

#include "text/jwks.h"

#define JWT_SIZE_MAX 4096 // bytes of a token

typedef struct {
  const gchar *issuer;   // "iss" must be this; NULL: any
  const gchar *audience; // "aud" must be or contain this; NULL: any
} JwtRules;

// Reports whether a text looks like a token: three parts, the first of which may be a JSON object.
gboolean jwt_is_token (const gchar *text);

// Reasons for which callers act differently. Compare by address.
extern const gchar jwt_unknown_key[]; // the set may be older than the token
extern const gchar jwt_expired[];

// Checks the signature of a token and its times, issuer and audience. `now_s` is the time since the
// Unix epoch; the times of a token may be off by 30 s. Returns the claims (transfer full), or NULL
// and sets `*wrong` to a static text that does not quote the token.
JsonObject *jwt_verify (
    const Jwks *keys, const gchar *token, const JwtRules *rules, gint64 now_s, const gchar **wrong);
