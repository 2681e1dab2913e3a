// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The TLS side of one connection of a client. After the handshake it makes a pair of sockets, hands
// one of them to the server, and carries bytes between the other one and the client. The server so
// sees an ordinary connection.
//
// A bridge holds at most one TLS record for each direction. If the client does not read, the
// bridge stops reading from the server's socket, which fills: the server sees a slow reader, as
// over TCP.

#include <gio/gio.h>

#include "base/loop.h"
#include "tls/tls_pair.h"

// Bytes of scratch memory that a bridge needs of its loop: the longest TLS record.
#define TLS_BRIDGE_SCRATCH 16384
// A client that has not finished the handshake in this time is closed.
#define TLS_HANDSHAKE_S 10
// How long the last bytes of a closed connection may take.
#define TLS_LINGER_S 3

typedef enum {
  TLS_RESULT_OK,
  TLS_RESULT_FAILED,  // the client sent no valid handshake, or refused the certificate
  TLS_RESULT_TIMEOUT, // the client was too slow
} TlsResult;

// The functions of the owner. Called from a loop's thread.
typedef struct {
  // The handshake has ended. With TLS_RESULT_OK, `plain` is the server's socket, which the owner
  // closes, and the result is the loop that runs the bridge from now on; otherwise `reason` says
  // why it failed.
  Loop *(*done) (
      gpointer owner, GSocket *connection, TlsResult result, const gchar *reason, gint plain);
  // The bridge is about to close both sockets, and forgets the owner.
  void (*ended) (gpointer owner);
} TlsBridgeOps;

// Starts the handshake on `loop`. Keeps a reference to `connection`, which must not be used
// otherwise, and to `pair`. Returns FALSE if the session cannot be made.
gboolean tls_bridge_start (
    Loop *loop, GSocket *connection, TlsPair *pair, const TlsBridgeOps *ops, gpointer owner);
