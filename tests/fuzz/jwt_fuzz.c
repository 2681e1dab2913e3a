// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the readers of tokens and key sets. The first byte of the input says what the rest is:
// 't', a token; 'k', a key set; 'h' and 'c', the header and the claims of a token that is then
// signed, because no change would pass the signature otherwise.

#include "app.h"

#include "../app/unit/jose.h"
#include "access/jwt.h"
#include "access/jwt_permissions.h"

#define NOW 1800000000

// The key of RFC 8037, A.1.
#define PUBLIC "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
#define SECRET "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"

static JoseKey key = { "EdDSA", NULL };
static Jwks *keys;

static gnutls_datum_t
decode (const gchar *text)
{
  gsize len;
  guint8 *bytes = jwks_decode (text, strlen (text), &len);

  require (bytes && len == 32);
  return (gnutls_datum_t) { bytes, (unsigned) len };
}

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  static const gchar set[] =
      "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"a\",\"x\":\"" PUBLIC "\"}]}";
  gnutls_datum_t x = decode (PUBLIC), k = decode (SECRET);

  only_critical ();
  keys = jwks_new (set, strlen (set), NULL);
  require (keys && gnutls_privkey_init (&key.key) == 0);
  require (gnutls_privkey_import_ecc_raw (key.key, GNUTLS_ECC_CURVE_ED25519, &x, NULL, &k) == 0);
  g_free (x.data);
  g_free (k.data);
  return 0;
}

// Returns whether the token is good.
static gboolean
read_token (const gchar *token)
{
  const JwtRules rules = { NULL, NULL };
  const gchar *wrong;
  JsonObject *claims = jwt_verify (keys, token, &rules, NOW, &wrong);

  require ((claims == NULL) == (wrong != NULL));
  jwt_is_token (token);
  if (!claims)
    return FALSE;
  for (AccessAction action = ACCESS_READ; action <= ACCESS_METRICS; action++)
    jwt_permits (claims, "permissions", action, "/cam/1", "/cam");
  json_object_unref (claims);
  return TRUE;
}

static void
read_signed (const gchar *header, const gchar *claims)
{
  gchar *token = jose_sign (&key, header, claims), *end = strrchr (token, '.') + 1;

  if (read_token (token)) {
    // The same with another signature is not good.
    *end = *end == 'A' ? 'B' : 'A';
    require (!read_token (token));
  }
  g_free (token);
}

static void
read_key_set (const gchar *text, gsize len)
{
  GError *error = NULL;
  Jwks *set = jwks_new (text, len, &error);

  check_error (set != NULL, &error);
  if (set) {
    require (jwks_count (set) > 0);
    jwks_verify (set, "RS256", NULL, "a.b", 3, (const guint8 *) "", 0);
    jwks_unref (set);
  }
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  gchar *text;

  if (size == 0)
    return 0;
  text = g_strndup ((const gchar *) data + 1, size - 1);
  if (data[0] == 'k')
    read_key_set ((const gchar *) data + 1, size - 1);
  else if (data[0] == 'h')
    read_signed (text, "{\"exp\":1800000001}");
  else if (data[0] == 'c')
    read_signed ("{\"alg\":\"EdDSA\",\"kid\":\"a\"}", text);
  else
    read_token (text);
  g_free (text);
  return 0;
}
