// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/entry.h"

#include "access/connections.h"
#include "base/port.h"
#include "outlets/rtsp/guard_connection.h"

#include <fcntl.h>
#include <unistd.h>

struct _Entry {
  GstRTSPServer *server;
  Port *port; // NULL before entry_listen() and after entry_stop()
  Connections *connections;
};

static Entry *the;

// ---- refusing ----

// Most clients give their first request the number 1.
static void
answer_busy (GSocket *socket)
{
  static const gchar busy[] = "RTSP/1.0 503 Service Unavailable\r\nCSeq: 1\r\n"
                              "Connection: close\r\nRetry-After: 10\r\n\r\n";

  g_socket_set_blocking (socket, FALSE);
  g_socket_send (socket, busy, sizeof busy - 1, NULL, NULL);
}

// ---- accepting ----

static GInetAddress *
dup_address (GSocket *socket)
{
  g_autoptr (GSocketAddress) peer = g_socket_get_remote_address (socket, NULL);
  GInetAddress *address = NULL;

  if (peer && G_IS_INET_SOCKET_ADDRESS (peer))
    address = g_object_ref (g_inet_socket_address_get_address (G_INET_SOCKET_ADDRESS (peer)));
  return address;
}

// Reports whether the limits admit a connection. Logs and counts a refusal.
static gboolean
admit (Entry *self, GSocket *socket)
{
  g_autoptr (GInetAddress) address = dup_address (socket);
  // A connection that has ended already has no address.
  gboolean admitted =
      address && connections_admit (self->connections, address, "connections", NULL, NULL);

  return admitted;
}

gboolean
entry_admit (Entry *self)
{
  GstRTSPContext *context = gst_rtsp_context_get_current ();
  GSocket *socket;

  if (!context) // the connection is from entry_take()
    return TRUE;
  socket = gst_rtsp_connection_get_read_socket (context->conn);
  if (admit (self, socket))
    return TRUE;
  answer_busy (socket);
  return FALSE;
}

void
entry_take (Entry *self, GSocket *client, GInetSocketAddress *peer)
{
  g_autofree gchar *ip = NULL;

  if (!admit (self, client)) {
    g_object_unref (client);
    return;
  }
  ip = g_inet_address_to_string (g_inet_socket_address_get_address (peer));
  guard_connection_begin ();
  gst_rtsp_server_transfer_connection (
      self->server, client, ip, g_inet_socket_address_get_port (peer), NULL);
  guard_connection_end ();
}

// Leaves the connections when its client is freed.
typedef struct {
  Connections *connections;
  GInetAddress *address;
  gint kept; // a file until the first answer, which opens one to write to the client; or -1
} Leaver;

static void
leaver_give_file (Leaver *leaver)
{
  if (leaver->kept >= 0)
    close (leaver->kept);
  leaver->kept = -1;
}

static void
leaver_free (gpointer data)
{
  Leaver *leaver = data;

  if (leaver->address)
    connections_leave (leaver->connections, leaver->address);
  connections_unref (leaver->connections);
  leaver_give_file (leaver);
  g_clear_object (&leaver->address);
  g_free (leaver);
}

// Called in the client's thread.
static void
on_send_message (
    GstRTSPClient *client, GstRTSPContext *ctx, GstRTSPMessage *message, Leaver *leaver)
{
  leaver_give_file (leaver);
  g_signal_handlers_disconnect_by_func (client, on_send_message, leaver);
}

void
entry_begin (Entry *self, GstRTSPClient *client, const gchar *peer)
{
  Leaver *leaver = g_new0 (Leaver, 1);
  RequestGuard *guard = guard_connection_get ();

  leaver->connections = connections_ref (self->connections);
  leaver->address =
      dup_address (gst_rtsp_connection_get_read_socket (gst_rtsp_client_get_connection (client)));
  leaver->kept = fcntl (STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  g_object_set_data_full (G_OBJECT (client), "rtsp-proxy-leaver", leaver, leaver_free);
  g_signal_connect (client, "send-message", G_CALLBACK (on_send_message), leaver);
  if (guard)
    guard_begin (guard, client, peer);
}

static void
on_connection (GSocket *listening, gpointer data)
{
  Entry *self = data;

  guard_connection_begin ();
  gst_rtsp_server_io_func (listening, G_IO_IN, self->server);
  guard_connection_end ();
}

void
entry_refuse (GSocket *listening, gpointer unused)
{
  refusals_count (REFUSED_FILES);
}

void
entry_listen (Entry *self, GSocket *socket)
{
  self->port = port_new_from_socket (socket, on_connection, entry_refuse, self);
}

guint
entry_count (void)
{
  return the ? connections_count (the->connections) : 0;
}

void
entry_stop (Entry *self)
{
  g_clear_pointer (&self->port, port_free);
}

Entry *
entry_new (GstRTSPServer *server)
{
  Entry *self = g_new0 (Entry, 1);

  self->server = server;
  self->connections = connections_new ();
  the = self;
  return self;
}

void
entry_free (Entry *self)
{
  entry_stop (self);
  the = NULL;
  connections_unref (self->connections);
  g_free (self);
}
