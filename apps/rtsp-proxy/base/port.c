// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/port.h"

#include "base/files_left.h"
#include "base/log.h"

#define BACKLOG 512

struct _Port {
  PortFunc waiting;
  gpointer data;
  GSocket *socket;
  GSource *accept;
};

static GSocket *
listen_on (GSocketAddress *address, GError **error)
{
  GSocket *socket = g_socket_new (
      g_socket_address_get_family (address), G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, error);

  if (!socket)
    return NULL;
  g_socket_set_blocking (socket, FALSE);
  g_socket_set_listen_backlog (socket, BACKLOG);
  if (!g_socket_bind (socket, address, TRUE, error) || !g_socket_listen (socket, error))
    g_clear_object (&socket);
  return socket;
}

static gboolean
on_connection (GSocket *socket, GIOCondition condition, gpointer data)
{
  static LogLimit limit = { .burst = 10, .interval_ms = 1000 };
  Port *self = data;
  GSocket *connection;

  if (files_are_left (FILES_FOR_CONNECTION)) {
    self->waiting (socket, self->data);
    return G_SOURCE_CONTINUE;
  }
  // A connection that is left in the queue would wake this thread again and again.
  connection = g_socket_accept (socket, NULL, NULL);
  log_event_limited (&limit, "a connection was refused: " FILES_PROBLEM);
  g_clear_object (&connection);
  return G_SOURCE_CONTINUE;
}

Port *
port_new (const gchar *address, guint16 number, PortFunc waiting, gpointer data, GError **error)
{
  GSocketAddress *own = g_inet_socket_address_new_from_string (address, number);
  GSocket *socket = listen_on (own, error);
  Port *self;

  g_object_unref (own);
  if (!socket) {
    g_prefix_error (error, "cannot listen on %s port %u: ", address, number);
    return NULL;
  }
  self = g_new0 (Port, 1);
  self->waiting = waiting;
  self->data = data;
  self->socket = socket;
  self->accept = g_socket_create_source (socket, G_IO_IN | G_IO_ERR | G_IO_HUP, NULL);
  g_source_set_callback (self->accept, G_SOURCE_FUNC (on_connection), self, NULL);
  g_source_attach (self->accept, NULL);
  return self;
}

void
port_free (Port *self)
{
  g_source_destroy (self->accept);
  g_source_unref (self->accept);
  g_socket_close (self->socket, NULL);
  g_object_unref (self->socket);
  g_free (self);
}

guint16
port_get_number (Port *self)
{
  GSocketAddress *bound = g_socket_get_local_address (self->socket, NULL);
  guint16 port = bound ? g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (bound)) : 0;

  g_clear_object (&bound);
  return port;
}
