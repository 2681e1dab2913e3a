// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Makes self-signed certificates.

#include <glib.h>

// How long a certificate is valid: a year.
#define TLS_MAKE_DAYS 365

// Writes a new ECDSA key (P-256) and a certificate for `hosts` (names and IP addresses; at least
// one), signed by itself, to a new PEM file that only its owner can read. Returns the certificate's
// SHA-256 fingerprint such as "5A:...", which the caller owns; NULL and `error` if a host is not
// valid, or if the file exists or cannot be written.
gchar *tls_make_certificate (const gchar *const *hosts, const gchar *file, GError **error);
