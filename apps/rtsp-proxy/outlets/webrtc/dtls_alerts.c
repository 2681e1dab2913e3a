// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/dtls_alerts.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <string.h>

#include "bits/bytes.h"

// A record (RFC 6347, 4.1): type, version, epoch and number, length; then, with AES-GCM (RFC 5288),
// the explicit part of the nonce, the alert and the tag.
#define HEADER 13
#define VERSION_AT 1
#define NUMBER_AT 3 // the epoch and the number: 8 bytes
#define NUMBER 8
#define LENGTH_AT 11
#define TYPE_ALERT 21
#define EXPLICIT 8
#define ALERT 2
#define TAG 16
#define RECORD (EXPLICIT + ALERT + TAG)

#define FATAL 2        // the first byte of an alert
#define CLOSE_NOTIFY 0 // the second
#define MASTER 48

// ---- keys ----

// Writes the key block (RFC 5246, 6.3).
static gboolean
expand (SSL *ssl, const EVP_MD *digest, guint8 *block, gsize size)
{
  static const gchar label[] = "key expansion";
  guint8 master[MASTER], seed[sizeof label - 1 + 2 * SSL3_RANDOM_SIZE];
  guint8 *randoms = seed + sizeof label - 1;
  EVP_KDF *kdf = EVP_KDF_fetch (NULL, "TLS1-PRF", NULL);
  EVP_KDF_CTX *context = kdf ? EVP_KDF_CTX_new (kdf) : NULL;
  OSSL_PARAM parameters[] = {
    OSSL_PARAM_construct_utf8_string (OSSL_KDF_PARAM_DIGEST, (char *) EVP_MD_get0_name (digest), 0),
    OSSL_PARAM_construct_octet_string (OSSL_KDF_PARAM_SECRET, master, sizeof master),
    OSSL_PARAM_construct_octet_string (OSSL_KDF_PARAM_SEED, seed, sizeof seed),
    OSSL_PARAM_construct_end (),
  };
  gboolean ok;

  memcpy (seed, label, sizeof label - 1);
  SSL_get_server_random (ssl, randoms, SSL3_RANDOM_SIZE);
  SSL_get_client_random (ssl, randoms + SSL3_RANDOM_SIZE, SSL3_RANDOM_SIZE);
  ok = context
       && SSL_SESSION_get_master_key (SSL_get_session (ssl), master, sizeof master) == sizeof master
       && EVP_KDF_derive (context, block, size, parameters) == 1;
  OPENSSL_cleanse (master, sizeof master);
  EVP_KDF_CTX_free (context);
  EVP_KDF_free (kdf);
  return ok;
}

static const EVP_CIPHER *
find_cipher (const SSL_CIPHER *suite)
{
  switch (SSL_CIPHER_get_cipher_nid (suite)) {
    case NID_aes_128_gcm:
      return EVP_aes_128_gcm ();
    case NID_aes_256_gcm:
      return EVP_aes_256_gcm ();
    default:
      return NULL;
  }
}

gboolean
dtls_alerts_init (DtlsAlerts *self, SSL *ssl)
{
  const SSL_CIPHER *suite = SSL_get_current_cipher (ssl);
  guint8 block[2 * (DTLS_ALERTS_KEY_MAX + DTLS_ALERTS_SALT)];
  gsize key, of; // the peer's keys are those of the client first
  gboolean ok;

  self->cipher = suite ? find_cipher (suite) : NULL;
  if (!self->cipher || SSL_version (ssl) != DTLS1_2_VERSION)
    return FALSE;
  key = (gsize) EVP_CIPHER_get_key_length (self->cipher);
  of = SSL_is_server (ssl) ? 0 : 1;
  ok = expand (ssl, SSL_CIPHER_get_handshake_digest (suite), block, 2 * (key + DTLS_ALERTS_SALT));
  memcpy (self->key, block + of * key, key);
  memcpy (self->salt, block + 2 * key + of * DTLS_ALERTS_SALT, DTLS_ALERTS_SALT);
  OPENSSL_cleanse (block, sizeof block);
  return ok;
}

// ---- records ----

// `record` has RECORD bytes behind its header.
static gboolean
decrypt (const DtlsAlerts *self, const guint8 *record, guint8 alert[ALERT])
{
  guint8 nonce[DTLS_ALERTS_SALT + EXPLICIT], tag[TAG], header[HEADER];
  EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new ();
  int n;
  gboolean ok;

  memcpy (nonce, self->salt, DTLS_ALERTS_SALT);
  memcpy (nonce + DTLS_ALERTS_SALT, record + HEADER, EXPLICIT);
  memcpy (tag, record + HEADER + EXPLICIT + ALERT, TAG);
  // What is authenticated beside the alert (RFC 5246, 6.2.3.3).
  memcpy (header, record + NUMBER_AT, NUMBER);
  header[NUMBER] = TYPE_ALERT;
  memcpy (header + NUMBER + 1, record + VERSION_AT, 2);
  header[HEADER - 2] = 0;
  header[HEADER - 1] = ALERT;
  ok = context && EVP_DecryptInit_ex (context, self->cipher, NULL, self->key, nonce) == 1
       && EVP_DecryptUpdate (context, NULL, &n, header, HEADER) == 1
       && EVP_DecryptUpdate (context, alert, &n, record + HEADER + EXPLICIT, ALERT) == 1
       && EVP_CIPHER_CTX_ctrl (context, EVP_CTRL_AEAD_SET_TAG, TAG, tag) == 1
       && EVP_DecryptFinal_ex (context, alert + n, &n) == 1;
  EVP_CIPHER_CTX_free (context);
  return ok;
}

static gboolean
is_last (const DtlsAlerts *self, const guint8 *record, gsize length)
{
  guint8 alert[ALERT];

  return record[0] == TYPE_ALERT && length == RECORD && decrypt (self, record, alert)
         && (alert[0] == FATAL || alert[1] == CLOSE_NOTIFY);
}

gboolean
dtls_alerts_are_last (const DtlsAlerts *self, const guint8 *datagram, gsize size)
{
  WeirBytes bytes = weir_bytes (datagram, size);
  const guint8 *record, *fragment;
  guint16 length;
  gboolean last = FALSE;

  while (!last && weir_bytes_take (&bytes, LENGTH_AT, &record) && weir_bytes_u16 (&bytes, &length)
         && weir_bytes_take (&bytes, length, &fragment))
    last = is_last (self, record, length);
  return last;
}
