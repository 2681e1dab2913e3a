// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Converts GIO's socket addresses to WeirAddress.

#include <gio/gio.h>

#include "core/net/address.h"

// Returns FALSE for an address that is neither IPv4 nor IPv6, or has no port; see
// weir_address_normalise().
static inline gboolean
weir_address_from_gio (GSocketAddress *address, WeirAddress *out)
{
  struct sockaddr_storage native;
  gssize len = g_socket_address_get_native_size (address);

  return len > 0 && g_socket_address_to_native (address, &native, sizeof native, NULL)
         && weir_address_normalise ((struct sockaddr *) &native, (socklen_t) len, out) == 0;
}
