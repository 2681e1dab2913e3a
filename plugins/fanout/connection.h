// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A reader's stream connection, as programs hold it, and the table in which sinks find it.
//
// `WeirConnection` is a GObject type that the plugin registers: a program makes one for a connected
// socket, without linking to the plugin, by g_object_new (g_type_from_name ("WeirConnection"),
// "socket", socket, NULL), and gives its `token` to sinks in the place of a host name.
//
//   socket        GSocket, construct-only; it stays the caller's, who may read from it but not
//                 write
//   token         string, read-only: names it to sinks. Nobody can guess it and none comes twice
//   close-reason  string, read-only: what a sink or the program has closed it for; NULL while it is
//                 open, or if it broke by itself
//   send          action: GBytes -> gboolean; bytes of the program's own, such as answers, in order
//                 with what sinks send and never within a packet. FALSE if it is closed
//   close         action: string; closes it for that reason: whoever reads finds the end
//   closed        signal: string; it has closed, and why. Comes once, from a thread of the plugin's
//                 that serves nobody, with no lock held, and not from within `send` or `close`
//
// One that is made for a socket which is not connected, or to which another writes, is closed from
// the start.

#include <gio/gio.h>

#include "core/net/conn.h"

G_BEGIN_DECLS

#define WEIR_TYPE_CONNECTION (weir_connection_get_type ())
G_DECLARE_FINAL_TYPE (WeirConnection, weir_connection, WEIR, CONNECTION, GObject)

// Whether a host's name has the form of a token: then it is no name to be looked up anywhere else.
gboolean weir_connection_is_token (const gchar *host);

// Whether one writes to that socket.
gboolean weir_connection_is_on (GSocket *socket);

// What a sink does with a token: NULL if it is of no connection, or of one that has closed.
WeirConn *weir_connection_lookup (const gchar *token);

// Whether it would be found.
gboolean weir_connection_is_open (const gchar *token);

// Who is at the other end, for people to read; to be freed. NULL if it has closed.
gchar *weir_connection_dup_peer (const gchar *token);

// A sink gives a reader up. Does nothing if it has closed already.
void weir_connection_close (const gchar *token, const gchar *reason);

G_END_DECLS
