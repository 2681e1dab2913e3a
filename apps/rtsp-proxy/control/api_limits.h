// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Bounds what HTTP clients may use, as libsoup does not: connections in all and of an address, and
// the time for a request and for reading its response. The limits are those of the RTSP clients
// (config/limits.h), counted apart. Each connection has one request.

#include <libsoup/soup.h>

// Watches the requests of a server. Call before it listens.
void api_limits_watch (SoupServer *server);

// Says that a client has read what was sent, and that more comes when something happens: no time
// counts until then.
void api_limits_rest (SoupServerMessage *message);

// Returns a copy of a client's address, which names its socket to this guard. Give it to
// soup_server_accept_iostream().
GSocketAddress *api_limits_dup_peer (GSocketAddress *peer, GSocket *client);
