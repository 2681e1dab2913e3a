// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Signs tokens for tests, with keys made on the spot.

#include <glib.h>
#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <string.h>

typedef struct {
  const gchar *algorithm; // "RS256", "ES256" or "EdDSA"
  gnutls_privkey_t key;
} JoseKey;

static inline gchar *
jose_encode (gconstpointer data, gsize len)
{
  gchar *text = g_base64_encode (data, len);

  g_strdelimit (text, "+", '-');
  g_strdelimit (text, "/", '_');
  text[strcspn (text, "=")] = '\0';
  return text;
}

// Takes ownership of the bytes of `datum`; drops leading zeros beyond `size` bytes.
static inline gchar *
jose_encode_datum (gnutls_datum_t *datum, gsize size)
{
  gsize skip = size && datum->size > size ? datum->size - size : 0;
  guint8 padded[64] = { 0 };
  gchar *text;

  if (datum->size < size) {
    memcpy (padded + size - datum->size, datum->data, datum->size);
    text = jose_encode (padded, size);
  } else {
    text = jose_encode (datum->data + skip, datum->size - skip);
  }
  gnutls_free (datum->data);
  return text;
}

static inline JoseKey
jose_key_new (const gchar *algorithm)
{
  JoseKey self = { algorithm, NULL };
  gnutls_pk_algorithm_t kind = GNUTLS_PK_EDDSA_ED25519;
  unsigned bits = GNUTLS_CURVE_TO_BITS (GNUTLS_ECC_CURVE_ED25519);

  if (g_str_equal (algorithm, "RS256")) {
    kind = GNUTLS_PK_RSA;
    bits = 2048;
  } else if (g_str_equal (algorithm, "ES256")) {
    kind = GNUTLS_PK_ECDSA;
    bits = GNUTLS_CURVE_TO_BITS (GNUTLS_ECC_CURVE_SECP256R1);
  }
  g_assert_cmpint (gnutls_privkey_init (&self.key), ==, 0);
  g_assert_cmpint (gnutls_privkey_generate (self.key, kind, bits, 0), ==, 0);
  return self;
}

// Returns the public key as a JWK without closing brace: the caller adds members and the brace.
static inline gchar *
jose_jwk_begin (const JoseKey *self)
{
  gnutls_pubkey_t public;
  gnutls_datum_t a = { NULL, 0 }, b = { NULL, 0 };
  gchar *x, *y = NULL, *jwk;

  gnutls_pubkey_init (&public);
  g_assert_cmpint (gnutls_pubkey_import_privkey (public, self->key, 0, 0), ==, 0);
  if (g_str_equal (self->algorithm, "RS256")) {
    gnutls_pubkey_export_rsa_raw2 (public, &a, &b, GNUTLS_EXPORT_FLAG_NO_LZ);
    x = jose_encode_datum (&a, 0);
    y = jose_encode_datum (&b, 0);
    jwk = g_strdup_printf ("{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"%s\"", x, y);
  } else {
    gnutls_pubkey_export_ecc_raw2 (public, NULL, &a, &b, GNUTLS_EXPORT_FLAG_NO_LZ);
    x = jose_encode_datum (&a, 32);
    y = b.size ? jose_encode_datum (&b, 32) : NULL;
    jwk = y ? g_strdup_printf ("{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"%s\",\"y\":\"%s\"", x, y)
            : g_strdup_printf ("{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"%s\"", x);
  }
  gnutls_pubkey_deinit (public);
  g_free (x);
  g_free (y);
  return jwk;
}

static inline gchar *
jose_sign_text (const JoseKey *self, const gchar *text)
{
  gnutls_datum_t data = { (unsigned char *) text, (unsigned) strlen (text) };
  gnutls_datum_t signature, r, s;
  guint8 both[64] = { 0 };
  gnutls_sign_algorithm_t sign = GNUTLS_SIGN_EDDSA_ED25519;

  if (g_str_equal (self->algorithm, "RS256"))
    sign = GNUTLS_SIGN_RSA_SHA256;
  else if (g_str_equal (self->algorithm, "ES256"))
    sign = GNUTLS_SIGN_ECDSA_SHA256;
  g_assert_cmpint (gnutls_privkey_sign_data2 (self->key, sign, 0, &data, &signature), ==, 0);
  if (sign != GNUTLS_SIGN_ECDSA_SHA256)
    return jose_encode_datum (&signature, 0);
  gnutls_decode_rs_value (&signature, &r, &s);
  for (guint i = 0; i < 32 && i < r.size; i++)
    both[31 - i] = r.data[r.size - 1 - i];
  for (guint i = 0; i < 32 && i < s.size; i++)
    both[63 - i] = s.data[s.size - 1 - i];
  gnutls_free (signature.data);
  gnutls_free (r.data);
  gnutls_free (s.data);
  return jose_encode (both, sizeof both);
}

static inline gchar *
jose_sign (const JoseKey *self, const gchar *header, const gchar *claims)
{
  gchar *a = jose_encode (header, strlen (header)), *b = jose_encode (claims, strlen (claims));
  gchar *text = g_strconcat (a, ".", b, NULL), *signature = jose_sign_text (self, text);
  gchar *token = g_strconcat (text, ".", signature, NULL);

  g_free (a);
  g_free (b);
  g_free (text);
  g_free (signature);
  return token;
}
