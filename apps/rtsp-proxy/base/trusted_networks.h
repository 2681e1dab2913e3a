// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The networks in which nobody asks for media in a neighbour's name: `trusted-networks` of the
// configuration. Call from any thread.

#include <gio/gio.h>

// Checks the text of one network. Returns NULL, or an error message that the caller owns.
gchar *trusted_networks_check (const gchar *text);

// Sets the networks, which trusted_networks_check() has checked; NULL: loopback, private and
// link-local ones.
void trusted_networks_set (gchar *const *networks);

// Reports whether a numeric address is in one of the networks.
gboolean trusted_networks_have (const gchar *address);
