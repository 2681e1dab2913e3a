// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the alerts of a DTLS 1.2 association of which nothing else is to come, so that OpenSSL's
// part of it can be freed.

#include <glib.h>
#include <openssl/ssl.h>

#define DTLS_ALERTS_KEY_MAX 32
#define DTLS_ALERTS_SALT 4

typedef struct {
  const EVP_CIPHER *cipher;
  guint8 key[DTLS_ALERTS_KEY_MAX]; // with which the peer encrypts
  guint8 salt[DTLS_ALERTS_SALT];
} DtlsAlerts;

// Takes the keys of an association whose handshake is complete. Returns FALSE if its cipher is not
// AES-GCM (RFC 5288).
gboolean dtls_alerts_init (DtlsAlerts *self, SSL *ssl);

// Reports whether a datagram has an authentic alert that ends the association: close_notify, or any
// fatal one.
gboolean dtls_alerts_are_last (const DtlsAlerts *self, const guint8 *datagram, gsize size);
