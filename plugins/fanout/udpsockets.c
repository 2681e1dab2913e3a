// SPDX-License-Identifier: LGPL-2.1-or-later
#include "udpsockets.h"

#include <string.h>
#include <sys/socket.h>

#include <gst/net/net.h>

#include "core/net/pacingrate.h"
#include "core/net/send.h"

GInetAddress *
weir_udp_resolve (const gchar *host, GCancellable *cancellable, GError **error)
{
  GInetAddress *address = g_inet_address_new_from_string (host);
  GResolver *resolver;
  GList *found;

  if (address)
    return address;
  resolver = g_resolver_get_default ();
  found = g_resolver_lookup_by_name (resolver, host, cancellable, error);
  if (found)
    address = g_object_ref (found->data);
  g_resolver_free_addresses (found);
  g_object_unref (resolver);
  return address;
}

static GSocket *
open_socket (GInetAddress *address, gint port, GError **error)
{
  GSocket *socket = g_socket_new (
      g_inet_address_get_family (address), G_SOCKET_TYPE_DATAGRAM, G_SOCKET_PROTOCOL_UDP, error);
  GSocketAddress *bind_to;
  GError *err = NULL;

  if (!socket)
    return NULL;
  bind_to = g_inet_socket_address_new (address, (guint16) port);
  g_socket_bind (socket, bind_to, TRUE, &err);
  g_object_unref (bind_to);
  // Where no port is free, readers of stream sockets need none; the kernel looks for one again when
  // the first datagram is sent.
  if (g_error_matches (err, G_IO_ERROR, G_IO_ERROR_ADDRESS_IN_USE) && port == 0
      && g_inet_address_get_is_any (address))
    g_clear_error (&err);
  if (err) {
    g_clear_object (&socket);
    g_propagate_error (error, err);
  }
  return socket;
}

static gboolean
open_own (
    WeirUdpSockets *sockets, const WeirUdpConfig *config, GCancellable *cancellable, GError **error)
{
  GInetAddress *address;

  if (config->bind_address) {
    GSocket *socket;

    address = weir_udp_resolve (config->bind_address, cancellable, error);
    if (!address)
      return FALSE;
    socket = open_socket (address, config->bind_port, error);
    if (g_inet_address_get_family (address) == G_SOCKET_FAMILY_IPV6)
      sockets->v6 = socket;
    else
      sockets->v4 = socket;
    g_object_unref (address);
    return socket != NULL;
  }

  address = g_inet_address_new_any (G_SOCKET_FAMILY_IPV4);
  sockets->v4 = open_socket (address, config->bind_port, error);
  g_object_unref (address);
  if (!sockets->v4)
    return FALSE;

  // On a machine without IPv6 the sink uses IPv4 alone. If the port is taken, that is an error.
  address = g_inet_address_new_any (G_SOCKET_FAMILY_IPV6);
  if (config->bind_port != 0) {
    GSocket *probe =
        g_socket_new (G_SOCKET_FAMILY_IPV6, G_SOCKET_TYPE_DATAGRAM, G_SOCKET_PROTOCOL_UDP, NULL);

    if (probe) {
      g_object_unref (probe);
      sockets->v6 = open_socket (address, config->bind_port, error);
      g_object_unref (address);
      return sockets->v6 != NULL;
    }
  } else {
    sockets->v6 = open_socket (address, 0, NULL);
  }
  g_object_unref (address);
  return TRUE;
}

static gint
get_buffer (GSocket *socket)
{
  gint size;

  // The kernel doubles the size for its own bookkeeping, and returns the double.
  return g_socket_get_option (socket, SOL_SOCKET, SO_SNDBUF, &size, NULL) ? size / 2 : 0;
}

// Returns FALSE if the buffer is smaller than `size`.
static gboolean
make_buffer (GSocket *socket, gint size)
{
  g_socket_set_option (socket, SOL_SOCKET, SO_SNDBUF, size, NULL);
  // As root, SO_SNDBUFFORCE exceeds net.core.wmem_max.
  if (get_buffer (socket) < size)
    g_socket_set_option (socket, SOL_SOCKET, SO_SNDBUFFORCE, size, NULL);
  return get_buffer (socket) >= size;
}

static void
set_up (GSocket *socket, const WeirUdpConfig *config, gboolean *buffer_short)
{
  if (!socket)
    return;
  if (config->buffer_size > 0)
    *buffer_short |= !make_buffer (socket, config->buffer_size);
  else if (get_buffer (socket) < WEIR_SEND_BUFFER)
    make_buffer (socket, WEIR_SEND_BUFFER);
  if (config->multicast_iface)
    setsockopt (g_socket_get_fd (socket), SOL_SOCKET, SO_BINDTODEVICE, config->multicast_iface,
        (socklen_t) strlen (config->multicast_iface));
  g_socket_set_broadcast (socket, TRUE);
}

gboolean
weir_udp_sockets_open (WeirUdpSockets *sockets, const WeirUdpConfig *config,
    GCancellable *cancellable, gboolean *buffer_short, GError **error)
{
  *sockets = (WeirUdpSockets) { 0 };
  *buffer_short = FALSE;

  if (config->socket) {
    if (g_socket_get_family (config->socket) == G_SOCKET_FAMILY_IPV6)
      sockets->v6 = g_object_ref (config->socket);
    else
      sockets->v4 = g_object_ref (config->socket);
    sockets->borrowed = TRUE;
  }
  if (config->socket_v6) {
    if (sockets->v6 && sockets->v6 != config->socket_v6) {
      weir_udp_sockets_close (sockets, FALSE);
      g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
          "the properties socket and socket-v6 are different IPv6 sockets");
      return FALSE;
    }
    g_set_object (&sockets->v6, config->socket_v6);
    sockets->borrowed = TRUE;
  }

  if (!sockets->v4 && !sockets->v6 && !open_own (sockets, config, cancellable, error)) {
    weir_udp_sockets_close (sockets, TRUE);
    return FALSE;
  }
  set_up (sockets->v4, config, buffer_short);
  set_up (sockets->v6, config, buffer_short);
  weir_udp_sockets_set_qos (sockets, config->qos_dscp);
  return TRUE;
}

void
weir_udp_sockets_close (WeirUdpSockets *sockets, gboolean close)
{
  gboolean do_close = close || !sockets->borrowed;

  if (sockets->v4 && do_close)
    g_socket_close (sockets->v4, NULL);
  if (sockets->v6 && do_close)
    g_socket_close (sockets->v6, NULL);
  g_clear_object (&sockets->v4);
  g_clear_object (&sockets->v6);
  sockets->borrowed = FALSE;
}

void
weir_udp_sockets_set_qos (const WeirUdpSockets *sockets, gint qos_dscp)
{
  if (qos_dscp < 0)
    return;
  if (sockets->v4)
    gst_net_utils_set_socket_tos (sockets->v4, qos_dscp);
  if (sockets->v6)
    gst_net_utils_set_socket_tos (sockets->v6, qos_dscp);
}

void
weir_udp_sockets_set_max_pacing_rate (const WeirUdpSockets *sockets, guint64 bits_per_s)
{
  if (sockets->v4)
    weir_set_max_pacing_rate (g_socket_get_fd (sockets->v4), bits_per_s);
  if (sockets->v6)
    weir_set_max_pacing_rate (g_socket_get_fd (sockets->v6), bits_per_s);
}

GSocket *
weir_udp_sockets_pick (const WeirUdpSockets *sockets, GSocketFamily family)
{
  return family == G_SOCKET_FAMILY_IPV6 || !sockets->v4 ? sockets->v6 : sockets->v4;
}

gboolean
weir_udp_sockets_enter (const WeirUdpSockets *sockets, const WeirUdpConfig *config,
    GInetAddress *address, GError **error)
{
  GSocket *socket = weir_udp_sockets_pick (sockets, g_inet_address_get_family (address));
  GError *err = NULL;

  if (!socket) {
    g_set_error_literal (
        error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, "there is no socket of the address family");
    return FALSE;
  }
  if (!g_inet_address_get_is_multicast (address)) {
    g_socket_set_ttl (socket, (guint) config->ttl);
    return TRUE;
  }

  // Another port of the same group may have joined it.
  if (config->auto_multicast
      && !g_socket_join_multicast_group (socket, address, FALSE, config->multicast_iface, &err)) {
    if (!g_error_matches (err, G_IO_ERROR, G_IO_ERROR_ADDRESS_IN_USE)) {
      g_propagate_error (error, err);
      return FALSE;
    }
    g_clear_error (&err);
  }
  g_socket_set_multicast_loopback (socket, config->loop);
  g_socket_set_multicast_ttl (socket, (guint) config->ttl_mc);
  return TRUE;
}

void
weir_udp_sockets_leave (
    const WeirUdpSockets *sockets, const WeirUdpConfig *config, GInetAddress *address)
{
  GSocket *socket = weir_udp_sockets_pick (sockets, g_inet_address_get_family (address));

  if (socket && config->auto_multicast && g_inet_address_get_is_multicast (address))
    g_socket_leave_multicast_group (socket, address, FALSE, config->multicast_iface, NULL);
}
