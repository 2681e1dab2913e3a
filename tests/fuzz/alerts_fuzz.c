// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the reader of the alerts of DTLS associations that are settled. The input is a datagram of
// somebody without the keys, or with a first byte of 's' the level and the description of an alert
// that the peer sends, and what another record before it has.

#include "app.h"

#include <openssl/evp.h>
#include <string.h>

#include "outlets/webrtc/dtls_alerts.h"

#define HEADER 13
#define EXPLICIT 8
#define TAG 16
#define RECORD (EXPLICIT + 2 + TAG)
#define BEFORE_MAX 2000

static DtlsAlerts alerts;

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  alerts =
      (DtlsAlerts) { .cipher = EVP_aes_128_gcm (), .key = "a key of the peer", .salt = "salt" };
  return 0;
}

static gsize
write_header (guint8 *out, guint8 type, gsize length)
{
  const guint8 header[HEADER] = { type, 254, 253, 0, 1, 0, 0, 0, 0, 0, 7, (guint8) (length >> 8),
    (guint8) length };

  memcpy (out, header, HEADER);
  return HEADER;
}

// Writes the record of an alert as RFC 5288 says.
static gsize
write_alert (guint8 *out, const guint8 alert[2])
{
  guint8 nonce[DTLS_ALERTS_SALT + EXPLICIT] = { 0 }, with[HEADER];
  guint8 *body = out + write_header (out, 21, RECORD);
  EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new ();
  int n;

  memcpy (nonce, alerts.salt, DTLS_ALERTS_SALT);
  memcpy (body, nonce + DTLS_ALERTS_SALT, EXPLICIT);
  memcpy (with, out + 3, 8); // epoch and number, then type, version and length
  memcpy (with + 8, out, 3);
  with[11] = 0;
  with[12] = 2;
  require (EVP_EncryptInit_ex (context, alerts.cipher, NULL, alerts.key, nonce) == 1);
  require (EVP_EncryptUpdate (context, NULL, &n, with, sizeof with) == 1);
  require (EVP_EncryptUpdate (context, body + EXPLICIT, &n, alert, 2) == 1);
  require (EVP_EncryptFinal_ex (context, body + EXPLICIT + 2, &n) == 1);
  require (EVP_CIPHER_CTX_ctrl (context, EVP_CTRL_AEAD_GET_TAG, TAG, body + EXPLICIT + 2) == 1);
  EVP_CIPHER_CTX_free (context);
  return HEADER + RECORD;
}

static void
take_alert (const guint8 alert[2], const guint8 *before, gsize size)
{
  gsize n = MIN (size, BEFORE_MAX);
  guint8 *datagram = g_malloc (2 * HEADER + RECORD + n);
  gsize len = write_header (datagram, 22, n);

  if (n > 0)
    memcpy (datagram + len, before, n);
  len += n;
  len += write_alert (datagram + len, alert);
  require (dtls_alerts_are_last (&alerts, datagram, len) == (alert[0] == 2 || alert[1] == 0));
  require (!dtls_alerts_are_last (&alerts, datagram, len - 1)); // cut
  datagram[len - 1] ^= 1;
  require (!dtls_alerts_are_last (&alerts, datagram, len)); // changed
  g_free (datagram);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  guint8 *copy;

  if (size >= 3 && data[0] == 's') {
    take_alert (data + 1, data + 3, size - 3);
    return 0;
  }
  copy = g_memdup2 (data, size); // its end is known to AddressSanitizer
  require (!dtls_alerts_are_last (&alerts, copy, size));
  g_free (copy);
  return 0;
}
