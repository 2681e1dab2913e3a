// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Accepts RTSP connections, within the limits. A connection too many is answered with 503 and
// closed before there is a client for it. Call from the main thread only, unless the function says
// otherwise.

#include <gst/rtsp-server/rtsp-server.h>

typedef struct _Entry Entry;

// `server` must outlive the result.
Entry *entry_new (GstRTSPServer *server);
void entry_free (Entry *self);

// Accepts connections on this socket.
void entry_listen (Entry *self, GSocket *socket);

// Takes a connection of which the server did not accept the socket, such as one over TLS (transfer
// full), and closes it if the limits refuse it. `peer` is its address.
void entry_take (Entry *self, GSocket *client, GInetSocketAddress *peer);

// Counts a connection that a port (base/port.h) refused because few files can be opened.
void entry_refuse (GSocket *listening, gpointer unused);

// Returns the number of connections that were admitted and are open; there is one entry for the
// process.
guint entry_count (void);

// Stops accepting.
void entry_stop (Entry *self);

// Decides about the connection that is being accepted. If it is refused, answers it and returns
// FALSE. Call in the server's create_client().
gboolean entry_admit (Entry *self);

// Counts the connection of `client` until the client is freed, and guards its requests. `peer` is
// its address and port. Call in the server's client_connected().
void entry_begin (Entry *self, GstRTSPClient *client, const gchar *peer);
