// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/endpoint.h"

#include <gio/gio.h>
#include <net/if.h>

#include "ingest/udp.h"

// A link-local group in IPv6 needs the interface in its address.
static gboolean
read_address (const PullEndpoint *endpoint, guint16 port, guint iface, WeirAddress *out)
{
  GSocketAddress *address = g_inet_socket_address_new_from_string (endpoint->address, port);
  struct sockaddr_storage native = { 0 };
  gboolean ok = address && g_socket_address_to_native (address, &native, sizeof native, NULL);

  if (ok && native.ss_family == AF_INET6 && iface)
    ((struct sockaddr_in6 *) &native)->sin6_scope_id = iface;
  g_clear_object (&address);
  return ok && weir_address_normalise ((struct sockaddr *) &native, sizeof native, out) == 0;
}

gint
endpoint_open (
    const PullEndpoint *endpoint, guint16 port, gsize buffer, gboolean gro, GError **error)
{
  guint iface = endpoint->iface ? if_nametoindex (endpoint->iface) : 0;
  WeirAddress address;
  gint fd;

  if (endpoint->iface && !iface) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND,
        "no such network interface: %s", endpoint->iface);
    return -1;
  }
  fd = read_address (endpoint, port, iface, &address) ? weir_udp_open (&address, iface, buffer, gro)
                                                      : -EADDRNOTAVAIL;
  if (fd >= 0)
    return fd;
  g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_OPEN_READ, "%s port %u: %s",
      endpoint->address, port, g_strerror (-fd));
  return -1;
}

gboolean
endpoint_read_address (GSocketAddress *from, WeirAddress *out)
{
  struct sockaddr_storage native;
  gboolean ok = from && g_socket_address_to_native (from, &native, sizeof native, NULL)
                && weir_address_normalise ((struct sockaddr *) &native,
                       (socklen_t) g_socket_address_get_native_size (from), out)
                       == 0;

  g_clear_object (&from);
  return ok;
}

WeirAddress
endpoint_with_port (const WeirAddress *address, gint port)
{
  WeirAddress with = *address;

  with.v4.sin_port = g_htons ((guint16) port); // the field is at the same place in IPv6
  return with;
}
