// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// RTSPS: gives clients that have finished a TLS handshake to the entry. Call from the main thread.

#include "config/listen_address.h"
#include "outlets/rtsp/entry.h"
#include "tls/tls_front.h"

typedef struct _TlsOutlet TlsOutlet;

// Listens. `entry` and `front` must outlive the result.
TlsOutlet *tls_outlet_new (
    Entry *entry, TlsFront *front, const ListenAddress *listen, GError **error);

// Returns the port in use. Call before tls_outlet_stop().
guint16 tls_outlet_get_port (TlsOutlet *self);

// Stops listening, but keeps the connections.
void tls_outlet_stop (TlsOutlet *self);
void tls_outlet_free (TlsOutlet *self);
