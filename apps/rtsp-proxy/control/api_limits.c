// SPDX-License-Identifier: LGPL-2.1-or-later
#include "control/api_limits.h"

#include "access/connections.h"

#include <string.h>

#define VISIT "rtsp-proxy-visit" // the data of a message

// The program may ask others whether it admits a client, between the head and the body of a
// request.
#define WHOLE_REQUEST 3 // times the time for the head

// The request of a connection.
typedef struct {
  Connections *connections;
  GInetAddress *address; // NULL: it is not counted
  GSocket *socket;
  gchar *peer;
  Limits limits;
  GSource *deadline;
} Visit;

static GQuark
socket_quark (void)
{
  return g_quark_from_static_string ("rtsp-proxy-api-socket");
}

// libsoup does not tell the socket of a stream that was given to it.
GSocketAddress *
api_limits_dup_peer (GSocketAddress *peer, GSocket *client)
{
  GInetSocketAddress *inet = G_INET_SOCKET_ADDRESS (peer);
  GSocketAddress *copy = g_inet_socket_address_new (
      g_inet_socket_address_get_address (inet), g_inet_socket_address_get_port (inet));

  g_object_set_qdata_full (G_OBJECT (copy), socket_quark (), g_object_ref (client), g_object_unref);
  return copy;
}

static void
stop_waiting (Visit *self)
{
  if (self->deadline)
    g_source_destroy (self->deadline);
  g_clear_pointer (&self->deadline, g_source_unref);
}

static void
visit_free (gpointer data)
{
  Visit *self = data;

  stop_waiting (self);
  if (self->address)
    connections_leave (self->connections, self->address);
  connections_unref (self->connections);
  g_clear_object (&self->address);
  g_clear_object (&self->socket);
  g_free (self->peer);
  g_free (self);
}

// libsoup finds the end of the connection, and frees the request.
static void
end (Visit *self, RefusedReason reason, const gchar *text)
{
  refusals_note (reason, self->peer, "api: %s", text);
  g_socket_shutdown (self->socket, TRUE, TRUE, NULL);
}

// ---- time ----

static gboolean
on_request_late (gpointer visit)
{
  end (visit, REFUSED_TIMEOUT, "a request takes too long (limits.request-timeout)");
  return G_SOURCE_REMOVE;
}

static gboolean
on_response_late (gpointer visit)
{
  end (visit, REFUSED_WRITE, "the client does not read its response (limits.write-timeout)");
  return G_SOURCE_REMOVE;
}

static void
wait_until (Visit *self, guint ms, GSourceFunc late)
{
  stop_waiting (self);
  self->deadline = g_timeout_source_new (ms);
  g_source_set_callback (self->deadline, late, self, NULL);
  g_source_attach (self->deadline, g_main_context_get_thread_default ());
}

static void
on_got_headers (SoupServerMessage *message, Visit *self)
{
  wait_until (self, (WHOLE_REQUEST - 1) * self->limits.request_ms, on_request_late);
}

static void
on_got_body (SoupServerMessage *message, Visit *self)
{
  stop_waiting (self);
}

static void
on_wrote_some (SoupServerMessage *message, Visit *self)
{
  wait_until (self, self->limits.write_ms, on_response_late);
}

static void
on_finished (SoupServerMessage *message, Visit *self)
{
  stop_waiting (self);
}

void
api_limits_rest (SoupServerMessage *message)
{
  Visit *self = g_object_get_data (G_OBJECT (message), VISIT);

  if (self)
    stop_waiting (self);
}

// ---- numbers ----

static void
refuse (Visit *self, RefusedReason reason)
{
  static const gchar busy[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n"
                              "Connection: close\r\n\r\n";

  g_socket_send (self->socket, busy, sizeof busy - 1, NULL, NULL);
  end (self, reason,
      reason == REFUSED_ADDRESS
          ? "there are too many connections from this address (limits.connections-per-address)"
          : "there are too many connections (limits.connections)");
}

static void
watch (SoupServerMessage *message, Visit *self)
{
  wait_until (self, self->limits.request_ms, on_request_late);
  g_signal_connect (message, "got-headers", G_CALLBACK (on_got_headers), self);
  g_signal_connect (message, "got-body", G_CALLBACK (on_got_body), self);
  g_signal_connect (message, "wrote-headers", G_CALLBACK (on_wrote_some), self);
  g_signal_connect (message, "wrote-chunk", G_CALLBACK (on_wrote_some), self);
  g_signal_connect (message, "finished", G_CALLBACK (on_finished), self);
}

// Called when a connection was accepted.
static void
on_started (SoupServer *server, SoupServerMessage *message, Connections *connections)
{
  GSocketAddress *peer = soup_server_message_get_remote_address (message);
  GSocket *socket = peer ? g_object_get_qdata (G_OBJECT (peer), socket_quark ()) : NULL;
  GInetAddress *address;
  RefusedReason reason;
  Visit *self;

  if (!socket)
    return;
  self = g_new0 (Visit, 1);
  self->connections = connections_ref (connections);
  self->socket = g_object_ref (socket);
  self->peer = g_socket_connectable_to_string (G_SOCKET_CONNECTABLE (peer));
  limits_get (&self->limits);
  g_object_set_data_full (G_OBJECT (message), VISIT, self, visit_free);
  address = g_inet_socket_address_get_address (G_INET_SOCKET_ADDRESS (peer));
  if (!connections_enter (connections, &self->limits, address, &reason)) {
    refuse (self, reason);
    return;
  }
  self->address = g_object_ref (address);
  watch (message, self);
}

static void
on_destroyed (gpointer connections, GObject *server)
{
  connections_unref (connections);
}

void
api_limits_watch (SoupServer *server)
{
  Connections *connections = connections_new ();

  g_signal_connect (server, "request-started", G_CALLBACK (on_started), connections);
  g_object_weak_ref (G_OBJECT (server), on_destroyed, connections);
}
