// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/port.h"

#include "base/files_left.h"
#include "base/log.h"

#define BACKLOG 512
#define PAUSE_MS 100

struct _Port {
  GSocket *socket;
  PortFunc waiting, refused;
  gpointer data;
  gboolean owns;   // the socket
  GSource *accept; // NULL during a pause
  guint pause;     // 0: there is none
};

static void listen_again (Port *self);

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
on_pause_over (gpointer port)
{
  Port *self = port;

  self->pause = 0;
  listen_again (self);
  return G_SOURCE_REMOVE;
}

// Closes a connection that waits. Without any file that is impossible: it stays in the queue, and
// would wake this thread again and again.
static gboolean
turn_away (Port *self)
{
  static LogLimit limit = { .burst = 10, .interval_ms = 1000 };
  GSocket *connection = g_socket_accept (self->socket, NULL, NULL);

  if (connection) {
    if (self->refused)
      self->refused (self->socket, self->data);
    log_event_limited (&limit, "a connection was refused: " FILES_PROBLEM);
    g_object_unref (connection);
    return G_SOURCE_CONTINUE;
  }
  log_event_limited (&limit, "connections wait: " FILES_PROBLEM);
  g_clear_pointer (&self->accept, g_source_unref);
  self->pause = g_timeout_add (PAUSE_MS, on_pause_over, self);
  return G_SOURCE_REMOVE;
}

static gboolean
on_connection (GSocket *socket, GIOCondition condition, gpointer port)
{
  Port *self = port;

  if (!files_are_left (FILES_FOR_CONNECTION))
    return turn_away (self);
  self->waiting (socket, self->data);
  return G_SOURCE_CONTINUE;
}

static void
listen_again (Port *self)
{
  self->accept = g_socket_create_source (self->socket, G_IO_IN | G_IO_ERR | G_IO_HUP, NULL);
  g_source_set_callback (self->accept, G_SOURCE_FUNC (on_connection), self, NULL);
  g_source_attach (self->accept, NULL);
}

Port *
port_new_from_socket (GSocket *listening, PortFunc waiting, PortFunc refused, gpointer data)
{
  Port *self = g_new0 (Port, 1);

  self->socket = g_object_ref (listening);
  self->waiting = waiting;
  self->refused = refused;
  self->data = data;
  listen_again (self);
  return self;
}

Port *
port_new (const gchar *address, guint16 number, PortFunc waiting, PortFunc refused, gpointer data,
    GError **error)
{
  g_autoptr (GSocketAddress) own = g_inet_socket_address_new_from_string (address, number);
  g_autoptr (GSocket) socket = listen_on (own, error);
  Port *self = NULL;

  if (socket)
    self = port_new_from_socket (socket, waiting, refused, data);
  if (self)
    self->owns = TRUE;
  else
    g_prefix_error (error, "cannot listen on %s port %u: ", address, number);
  return self;
}

void
port_free (Port *self)
{
  if (self->accept)
    g_source_destroy (self->accept);
  g_clear_pointer (&self->accept, g_source_unref);
  if (self->pause)
    g_source_remove (self->pause);
  if (self->owns)
    g_socket_close (self->socket, NULL);
  g_object_unref (self->socket);
  g_free (self);
}

guint16
port_get_number (Port *self)
{
  g_autoptr (GSocketAddress) bound = g_socket_get_local_address (self->socket, NULL);

  return bound ? g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (bound)) : 0;
}
