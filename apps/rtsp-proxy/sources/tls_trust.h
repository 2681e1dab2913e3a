// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Which certificate of an upstream is trusted. Call from any thread.

#include <gio/gio.h>

#include "tls/tls_fingerprint.h"

typedef struct {
  gboolean any;        // every certificate is
  gchar *fingerprint;  // as tls_fingerprint_to_text(): only this one is; or NULL
  gchar *ca;           // a PEM file of authorities, in place of the system's; or NULL
  gboolean is_limited; // an API client has named `ca` (base/file_roots.h)
} TlsTrust;

void tls_trust_copy (TlsTrust *to, const TlsTrust *from);
void tls_trust_clear (TlsTrust *self);

// Reads the authorities of `ca`, which is not NULL. (transfer full) Returns NULL and sets `error`
// if that fails.
GTlsDatabase *tls_trust_load (const TlsTrust *self, GError **error);

// Checks a certificate that has these faults. Returns NULL if it is trusted, or a reason for the
// log, with the fingerprint of the certificate. The caller owns the reason.
gchar *tls_trust_check (
    const TlsTrust *self, GTlsCertificate *certificate, GTlsCertificateFlags faults);
