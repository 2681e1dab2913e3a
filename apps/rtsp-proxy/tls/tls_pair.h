// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A certificate, with its chain, and its private key, from PEM files. A pair never changes. Call
// from any thread.

#include <glib.h>
#include <gnutls/gnutls.h>

typedef struct _TlsPair TlsPair;

#define TLS_PAIR_ERROR (tls_pair_error_quark ())

// Which of the two files is wrong.
typedef enum {
  TLS_PAIR_ERROR_CERTIFICATE,
  TLS_PAIR_ERROR_KEY,
} TlsPairError;

GQuark tls_pair_error_quark (void);

// Reads a pair from two files, which may be the same file. Returns NULL and sets `error`, whose
// message names the file and the cause: a file is missing or unreadable, it is not PEM, the key is
// encrypted, or the two do not belong together. The caller owns the reference.
TlsPair *tls_pair_load (const gchar *certificate, const gchar *key, GError **error);
TlsPair *tls_pair_ref (TlsPair *self);
void tls_pair_unref (TlsPair *self);

// Returns the credentials for a session of a server. They live as long as the pair.
gnutls_certificate_credentials_t tls_pair_get_credentials (const TlsPair *self);

// Returns a text such as "valid until 2027-11-22, SHA-256 5A:...". The caller owns the result.
gchar *tls_pair_dup_summary (const TlsPair *self);

// Returns what is wrong with the certificate at `now` (seconds since the epoch), such as "has
// expired on 2026-01-31"; NULL if nothing is. The caller owns the result.
gchar *tls_pair_dup_warning (const TlsPair *self, gint64 now);
