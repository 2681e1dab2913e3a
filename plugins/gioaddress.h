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

// Reads an address from text such as "10.0.0.1" and a port from 1 to 65535. Returns FALSE if they
// are not valid.
static inline gboolean
weir_address_from_text (const gchar *host, gint port, WeirAddress *out)
{
  GInetAddress *inet = host ? g_inet_address_new_from_string (host) : NULL;
  GSocketAddress *address;
  gboolean ok;

  if (!inet || port <= 0 || port > G_MAXUINT16) {
    g_clear_object (&inet);
    return FALSE;
  }
  address = g_inet_socket_address_new (inet, (guint16) port);
  ok = weir_address_from_gio (address, out);
  g_object_unref (address);
  g_object_unref (inet);
  return ok;
}
