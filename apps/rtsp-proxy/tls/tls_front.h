// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The front of all TLS listeners: makes the handshakes with clients, and gives the servers plain
// sockets (tls_bridge.h).
//
// One thread makes all handshakes and none of them can block it; others carry bytes. The functions
// and the callback are for the main thread.

#include <gio/gio.h>

#include "tls/tls_keys.h"

typedef struct _TlsFront TlsFront;

// Handshakes under way at the same time, in all and from one address (addresses with one key of
// base/address.h). tls_pending.h says which one ends when there is a further one.
#define TLS_HANDSHAKES_MAX 512
#define TLS_HANDSHAKES_OF_ADDRESS_MAX 32

// Handshakes by their end, since the start. `refused` counts connections that were closed
// because there were too many.
typedef struct {
  guint64 ok, failed, timeout, refused;
} TlsCounts;

// A client has finished the handshake. `client` (transfer full) is a socket with the addresses of
// the client's connection, and must not be used for anything else before tls_front_switch().
typedef void (*TlsFrontFunc) (GSocket *client, gpointer data);

// Makes `client` the plain connection: the server reads from it what the client has sent,
// decrypted, and so on. Only the addresses that GSocket has learnt before stay those of the
// connection.
void tls_front_switch (GSocket *client);

// Starts the threads. Returns NULL and sets `error` if the system has no thread or file left.
TlsFront *tls_front_new (TlsKeys *keys, GError **error);

// Closes all connections at once. No callback comes any more.
void tls_front_free (TlsFront *self);

// Accepts a connection on a listening socket, and calls `taken` after the handshake, unless
// `listening` was closed meanwhile. `data` must live until then.
void tls_front_accept (TlsFront *self, GSocket *listening, TlsFrontFunc taken, gpointer data);

// Returns the number of connections. The last bytes of one may leave after the server closed it.
guint tls_front_n_open (TlsFront *self);

void tls_front_count (TlsFront *self, TlsCounts *counts);

// Returns the client's address for a socket of a TlsFrontFunc. Returns NULL for any other socket,
// so that it also tells whether a connection came over TLS. Call from any thread. (transfer none)
GSocketAddress *tls_front_get_peer (GSocket *client);
