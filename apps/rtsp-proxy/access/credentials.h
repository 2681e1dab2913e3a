// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The credentials of a header Authorization, parsed.

#include <glib.h>

typedef enum {
  CREDENTIALS_NONE,  // no header
  CREDENTIALS_WRONG, // a header that is malformed or of another kind
  CREDENTIALS_BASIC, // also as "Bearer NAME:PASSWORD"
  CREDENTIALS_DIGEST,
  CREDENTIALS_BEARER,
} CredentialsKind;

typedef struct {
  CredentialsKind kind;
  gchar *user;        // BASIC, DIGEST
  gchar *secret;      // the password (BASIC) or the token (BEARER)
  GHashTable *digest; // the parameters by name in lower case (DIGEST)
} Credentials;

// `authorization` may be NULL. Clear the result with credentials_clear(), which also overwrites the
// secret.
void credentials_parse (const gchar *authorization, Credentials *result);
void credentials_clear (Credentials *self);
