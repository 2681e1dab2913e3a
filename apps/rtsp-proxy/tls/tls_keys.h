// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The certificate and key that new connections get. They are read again when their files change.
// Call from the main thread.

#include "tls/tls_pair.h"

// How often the files are looked at. A pair is read when the files have been the same for this
// time, because they are written one after the other.
#define TLS_KEYS_INTERVAL_S 2

typedef struct _TlsKeys TlsKeys;

// Takes a pair that was read from these files (transfer full), and watches the files.
TlsKeys *tls_keys_new (const gchar *certificate, const gchar *key, TlsPair *pair);
void tls_keys_free (TlsKeys *self);

// Reads the files again. If the new pair is not sound, logs why and keeps the old one.
void tls_keys_reload (TlsKeys *self);

// Returns the current pair. The caller owns the reference.
TlsPair *tls_keys_dup_pair (TlsKeys *self);
