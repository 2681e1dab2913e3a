// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A port where clients connect over TLS. Call from the main thread, which also calls `taken`.

#include "tls/tls_front.h"

typedef struct _TlsPort TlsPort;

// Listens. `address` is an IP address; port 0 is any free port. Returns NULL and sets `error` if
// the system refuses. `front` must outlive the result.
TlsPort *tls_port_new (TlsFront *front, const gchar *address, guint16 port, TlsFrontFunc taken,
    gpointer data, GError **error);

// Stops listening. `taken` is not called any more; connections that it got stay.
void tls_port_free (TlsPort *self);

guint16 tls_port_get_number (TlsPort *self);
