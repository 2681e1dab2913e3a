// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the readers of the header Authorization. The input is its value.

#include "access/credentials.h"
#include "access/digest.h"
#include "app.h"

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  only_critical ();
  return 0;
}

// No input can have the digest of a secret that nobody knows.
static void
check_digest (GHashTable *parameters)
{
  gchar name[] = "u", md5[] = "00112233445566778899aabbccddeeff";
  gchar sha2[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
  const User user = { .name = name, .md5_digest = md5, .sha2_digest = sha2 };
  const AccessRequest request = { .path = "/cam", .mount = "/cam", .method = "DESCRIBE" };
  Nonce nonce = { g_strdup ("n"), 0, 0 };

  require (digest_check (parameters, &user, &request, &nonce, 1) == DIGEST_WRONG);
  require (digest_check (parameters, NULL, &request, &nonce, 1) == DIGEST_WRONG);
  nonce_clear (&nonce);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  gchar *text = g_strndup ((const gchar *) data, size);
  Credentials credentials;

  credentials_parse (text, &credentials);
  if (credentials.kind == CREDENTIALS_DIGEST)
    check_digest (credentials.digest);
  else if (credentials.kind == CREDENTIALS_BASIC)
    require (credentials.user && credentials.secret);
  else if (credentials.kind == CREDENTIALS_BEARER)
    require (credentials.secret && *credentials.secret);
  credentials_clear (&credentials);
  g_free (text);
  return 0;
}
