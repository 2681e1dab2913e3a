// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// RTSPS: gives clients that have finished a TLS handshake to the entry. Call from the main thread.

#include "config/tls_config.h"
#include "outlets/rtsp/entry.h"
#include "tls/tls_front.h"

typedef struct _TlsOutlet TlsOutlet;

// Listens. `entry` must outlive the result. Takes the pair of `config`, which stays valid.
TlsOutlet *tls_outlet_new (Entry *entry, const TlsConfig *config, GError **error);

// Stops listening, but keeps the connections.
void tls_outlet_stop (TlsOutlet *self);
void tls_outlet_free (TlsOutlet *self);

// Reads the certificate and the key again.
void tls_outlet_reload (TlsOutlet *self);

TlsFront *tls_outlet_get_front (TlsOutlet *self);

// Sets where it listens, with the port in use. The text stays the outlet's. Call before
// tls_outlet_stop().
void tls_outlet_get_listen (TlsOutlet *self, ListenAddress *listen);
