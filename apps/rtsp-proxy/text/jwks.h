// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A JSON Web Key Set (RFC 7517): the public keys that sign tokens. A set does not change, so that
// any thread may use it.

#include <glib.h>

#define JWKS_SIZE_MAX (64 * 1024) // bytes of text

typedef struct _Jwks Jwks;

// Reads a set with up to 64 keys. Skips keys that are not for checking signatures by RS256, ES256
// or EdDSA (Ed25519). Returns NULL and sets `error` if the text is not a key set, if no key is
// left, if one of them is weak or wrong, or if one is private.
Jwks *jwks_new (const gchar *text, gsize len, GError **error);

// Reads a set from a file. Returns NULL and sets `error` as jwks_new() does, and if `file` cannot
// be read or is not a regular file; reading it does not block on a FIFO.
Jwks *jwks_load (const gchar *file, GError **error);
Jwks *jwks_ref (Jwks *self);
void jwks_unref (Jwks *self);

// Returns the number of usable keys.
guint jwks_count (const Jwks *self);

// Reports whether two sets were read from the same text.
gboolean jwks_equal (const Jwks *self, const Jwks *other);

typedef enum {
  JWKS_GOOD,
  JWKS_BAD,         // the signature is wrong
  JWKS_UNKNOWN_KEY, // the set has no such key
  JWKS_UNKNOWN_ALGORITHM,
} JwksVerdict;

// Checks a signature as JWS has it. `algorithm` is that of the token, such as "ES256"; a key is
// used for the algorithm of its own type only. `id` may be NULL: then the set must have exactly one
// key for the algorithm.
JwksVerdict jwks_verify (const Jwks *self, const gchar *algorithm, const gchar *id,
    const gchar *signed_text, gsize signed_len, const guint8 *signature, gsize signature_len);

// Decodes base64url without padding, as JOSE uses it. Returns NULL for any other text. `*len`
// receives the number of bytes; a NUL follows them. The caller owns the result.
guint8 *jwks_decode (const gchar *text, gsize text_len, gsize *len);
