// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Opens the UDP sockets of upstreams that send to this host.

#include "net/address.h"
#include "sources/pull.h"

// Opens a socket for `port` at the endpoint's address, joins the group if that is a multicast
// group, and asks for a receive buffer of `buffer` bytes, as the kernel accounts them. `gro`: the
// kernel may merge datagrams. Returns the descriptor, or -1 and sets `error`.
gint endpoint_open (
    const PullEndpoint *endpoint, guint16 port, gsize buffer, gboolean gro, GError **error);

// Reads a socket's address. Takes ownership of `from`, which may be NULL. Returns FALSE if it is
// not an IP address.
gboolean endpoint_read_address (GSocketAddress *from, WeirAddress *out);

// Returns the same address with another port.
WeirAddress endpoint_with_port (const WeirAddress *address, gint port);
