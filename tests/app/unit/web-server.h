// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <libsoup/soup.h>

// A web server of a test, on a free port of 127.0.0.1. It accepts connections itself, because
// libsoup 3.2 never frees a socket that its server has accepted.
typedef struct {
  SoupServer *soup;
  GSocketService *service;
  guint16 port;
} WebServer;

static gboolean
web_server_take (
    GSocketService *service, GSocketConnection *connection, GObject *source, gpointer soup)
{
  GSocketAddress *local = g_socket_connection_get_local_address (connection, NULL);
  GSocketAddress *remote = g_socket_connection_get_remote_address (connection, NULL);

  if (local && remote)
    soup_server_accept_iostream (soup, G_IO_STREAM (connection), local, remote, NULL);
  g_clear_object (&local);
  g_clear_object (&remote);
  return TRUE;
}

static void
web_server_start (WebServer *self, SoupServerCallback handle)
{
  GInetAddress *loopback = g_inet_address_new_loopback (G_SOCKET_FAMILY_IPV4);
  GSocketAddress *address = g_inet_socket_address_new (loopback, 0), *bound = NULL;

  self->soup = soup_server_new (NULL, NULL);
  soup_server_add_handler (self->soup, NULL, handle, NULL, NULL);
  self->service = g_socket_service_new ();
  g_signal_connect (self->service, "incoming", G_CALLBACK (web_server_take), self->soup);
  g_assert_true (g_socket_listener_add_address (G_SOCKET_LISTENER (self->service), address,
      G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, NULL, &bound, NULL));
  self->port = g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (bound));
  g_object_unref (bound);
  g_object_unref (address);
  g_object_unref (loopback);
}

static void
web_server_end (WebServer *self)
{
  g_socket_service_stop (self->service);
  g_socket_listener_close (G_SOCKET_LISTENER (self->service));
  g_object_unref (self->service);
  // It sees that clients have closed their connections.
  while (g_main_context_iteration (NULL, FALSE))
    ;
  soup_server_disconnect (self->soup);
  g_object_unref (self->soup);
}
