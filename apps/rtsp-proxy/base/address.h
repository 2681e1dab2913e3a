// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Addresses of clients, as everything that bounds or distinguishes clients sees them. Call from any
// thread.

#include <gio/gio.h>

// Returns the address of a text. An IPv4 address in the form of IPv6 sockets (::ffff:192.0.2.1)
// becomes the IPv4 address, and a zone (fe80::1%eth0) is left out. Returns NULL if the text is no
// address. (transfer full)
GInetAddress *address_parse (const gchar *text);

// Returns the key under which each limit counts a client: the IPv4 address, also if an IPv6 socket
// shows it; or the network of 64 bits of an IPv6 address, as a host may use all addresses of one.
// (transfer full)
gchar *address_dup_key (GInetAddress *address);

// Does the same for a text; what is no address is its own key. (transfer full)
gchar *address_dup_key_of_text (const gchar *text);

// Reports whether the client is on this machine.
gboolean address_is_loopback (GInetAddress *address);
