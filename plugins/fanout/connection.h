// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A stream connection that fanoutsink elements and the program write to together.
//
// The plugin registers the GObject type `WeirConnection`. A program creates one for a connected
// socket without linking to the plugin, with g_object_new (g_type_from_name ("WeirConnection"),
// "socket", socket, NULL), and gives its `token` to sinks in place of a host name.
//
//   socket        GSocket, construct-only. The program may read from it, but not write to it
//   token         string, read-only. Names the connection to sinks; 32 random hexadecimal digits
//   close-reason  string, read-only. Reason given by the sink or program that closed the
//   connection;
//                 NULL while it is open, or if the peer or the network closed it
//   waiting       guint64, read-only. Bytes of `send`, and of a packet, that wait because the peer
//                 does not read
//   read-estimate  action (gpointer view, guint64 now) -> gboolean. Fills in a WeirEstimateView
//                 (core/net/estimate.h): what the line carries at `now`, ns of CLOCK_MONOTONIC, by
//                 what waits in the socket (core/net/tcp_line.h), at which it looks every 100 ms at
//                 most. Returns FALSE if the socket is no TCP socket, or is closed
//   send          action (GBytes bytes) -> gboolean. Writes bytes of the program, in order with the
//                 packets of sinks and never within a packet. Returns FALSE if it is closed
//   close         action (string reason). Closes the connection; the program then reads end of file
//   closed        signal (string reason). Comes once when the connection has closed, from a thread
//                 of the plugin that only emits this signal, without a lock, and never from within
//                 `send` or `close`
//
// A connection for a socket that is not connected, or that has another WeirConnection, is closed
// from the start.

#include <gio/gio.h>

#include "core/net/conn.h"

G_BEGIN_DECLS

#define WEIR_TYPE_CONNECTION (weir_connection_get_type ())
G_DECLARE_FINAL_TYPE (WeirConnection, weir_connection, WEIR, CONNECTION, GObject)

// The reason if the peer took no data for too long.
#define WEIR_CONNECTION_STALLED "the client stopped reading"

// Returns 32 random hexadecimal digits. The caller owns the result.
gchar *weir_connection_make_token (void);

// Reports whether `host` has the form of a token. Such a string is never looked up as a host name.
gboolean weir_connection_is_token (const gchar *host);

// Reports whether a WeirConnection writes to this socket.
gboolean weir_connection_is_on (GSocket *socket);

// Returns the open connection of a token, or NULL. The caller owns the reference.
WeirConn *weir_connection_lookup (const gchar *token);

// Reports whether the connection of a token is open.
gboolean weir_connection_is_open (const gchar *token);

// Returns the peer's address as text for the log, or NULL if the connection has closed. The caller
// owns the result.
gchar *weir_connection_dup_peer (const gchar *token);

// Closes the connection of a token, if it is still open.
void weir_connection_close (const gchar *token, const gchar *reason);

G_END_DECLS
