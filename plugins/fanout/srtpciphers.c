// SPDX-License-Identifier: LGPL-2.1-or-later
#include "srtpciphers.h"

#include <limits.h>

#include <openssl/core_names.h>
#include <openssl/evp.h>

static void *
cipher_new (const uint8_t *key, bool gcm)
{
  EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new ();
  const EVP_CIPHER *type = gcm ? EVP_aes_128_gcm () : EVP_aes_128_ctr ();

  if (cipher && EVP_EncryptInit_ex (cipher, type, NULL, key, NULL) == 1)
    return cipher;
  EVP_CIPHER_CTX_free (cipher);
  return NULL;
}

static void
cipher_free (void *cipher)
{
  EVP_CIPHER_CTX_free (cipher);
}

static bool
ctr (void *cipher, const uint8_t *block, const uint8_t *in, size_t len, uint8_t *out)
{
  int n;

  return len <= INT_MAX && EVP_EncryptInit_ex (cipher, NULL, NULL, NULL, block) == 1
         && EVP_EncryptUpdate (cipher, out, &n, in, (int) len) == 1;
}

static bool
seal (void *cipher, const uint8_t *nonce, const uint8_t *aad, size_t aad_len, const uint8_t *in,
    size_t len, uint8_t *out)
{
  int n;

  return len <= INT_MAX && aad_len <= INT_MAX
         && EVP_EncryptInit_ex (cipher, NULL, NULL, NULL, nonce) == 1
         && EVP_EncryptUpdate (cipher, NULL, &n, aad, (int) aad_len) == 1
         && (len == 0 || EVP_EncryptUpdate (cipher, out, &n, in, (int) len) == 1)
         && EVP_EncryptFinal_ex (cipher, out + len, &n) == 1
         && EVP_CIPHER_CTX_ctrl (cipher, EVP_CTRL_AEAD_GET_TAG, WEIR_SRTP_GCM_TAG, out + len) == 1;
}

static bool
open_sealed (void *cipher, const uint8_t *nonce, const uint8_t *aad, size_t aad_len,
    const uint8_t *in, size_t len, uint8_t *out)
{
  int n;

  return len <= INT_MAX && aad_len <= INT_MAX
         && EVP_DecryptInit_ex (cipher, NULL, NULL, NULL, nonce) == 1
         && EVP_CIPHER_CTX_ctrl (
                cipher, EVP_CTRL_AEAD_SET_TAG, WEIR_SRTP_GCM_TAG, (void *) (in + len))
                == 1
         && EVP_DecryptUpdate (cipher, NULL, &n, aad, (int) aad_len) == 1
         && (len == 0 || EVP_DecryptUpdate (cipher, out, &n, in, (int) len) == 1)
         && EVP_DecryptFinal_ex (cipher, out + len, &n) == 1;
}

static void *
mac_new (const uint8_t *key)
{
  const OSSL_PARAM params[] = {
    OSSL_PARAM_construct_utf8_string (OSSL_MAC_PARAM_DIGEST, (char *) "SHA1", 0),
    OSSL_PARAM_construct_end (),
  };
  EVP_MAC *type = EVP_MAC_fetch (NULL, "HMAC", NULL);
  EVP_MAC_CTX *mac = type ? EVP_MAC_CTX_new (type) : NULL;

  EVP_MAC_free (type);
  if (mac && EVP_MAC_init (mac, key, WEIR_SRTP_AUTH, params) == 1)
    return mac;
  EVP_MAC_CTX_free (mac);
  return NULL;
}

static void
mac_free (void *mac)
{
  EVP_MAC_CTX_free (mac);
}

static bool
mac (void *mac, const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len, uint8_t *digest)
{
  size_t n;

  return EVP_MAC_init (mac, NULL, 0, NULL) == 1 && EVP_MAC_update (mac, a, a_len) == 1
         && (b_len == 0 || EVP_MAC_update (mac, b, b_len) == 1)
         && EVP_MAC_final (mac, digest, &n, WEIR_SRTP_AUTH) == 1;
}

const WeirSrtpCiphers weir_srtp_ciphers = {
  cipher_new,
  cipher_free,
  ctr,
  seal,
  open_sealed,
  mac_new,
  mac_free,
  mac,
};
