// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/http/http_outlet.h"

#include "access/connections.h"
#include "base/files_left.h"
#include "base/log.h"
#include "base/memory.h"
#include "outlets/http/http_connection.h"
#include "outlets/http/http_counts.h"
#include "tls/tls_port.h"

#include <errno.h>
#include <string.h>

#define BACKLOG 512
#define THREADS_MAX 4 // they never wait for a disk or a client
#define STOP_TICK_MS 10

struct _HttpOutlet {
  HttpContext context;
  Connections *connections;
  GSocket *listening; // NULL: none
  GSource *accept;
  TlsPort *tls; // NULL: none
  ListenAddress listen, tls_listen;

  GMutex lock;      // protects the fields below
  GHashTable *open; // of HttpConnection, without references
};

// ---- connections ----

static void
on_ended (HttpConnection *connection, gpointer data)
{
  HttpOutlet *self = data;

  g_mutex_lock (&self->lock);
  connections_leave (self->connections, http_connection_get_address (connection));
  g_hash_table_remove (self->open, connection);
  http_counts_add_connections (-1);
  g_mutex_unlock (&self->lock);
}

static gboolean
may_enter (HttpOutlet *self, GInetAddress *address, const gchar *peer)
{
  static const gchar *const texts[REFUSED_N_REASONS] = {
    [REFUSED_CONNECTIONS] = "there are too many connections (limits.connections)",
    [REFUSED_ADDRESS] =
        "there are too many connections from this address (limits.connections-per-address)",
    [REFUSED_MEMORY] = MEMORY_PROBLEM,
    [REFUSED_FILES] = FILES_PROBLEM,
  };
  RefusedReason reason = REFUSED_FILES;
  Limits limits;

  limits_get (&limits);
  if (files_are_left (FILES_FOR_CONNECTION)) {
    reason = REFUSED_MEMORY;
    if (memory_get_level () == MEMORY_ENOUGH
        && connections_enter (self->connections, &limits, address, &reason))
      return TRUE;
  }
  refusals_note (reason, peer, "%s", texts[reason]);
  return FALSE;
}

// Answers before anything was read.
static void
answer_busy (GSocket *socket)
{
  static const gchar busy[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n"
                              "Connection: close\r\nRetry-After: 10\r\n\r\n";

  g_socket_set_blocking (socket, FALSE);
  g_socket_send (socket, busy, sizeof busy - 1, NULL, NULL);
}

// Takes ownership of the socket.
static void
serve (HttpOutlet *self, GSocket *socket, GInetSocketAddress *from, gboolean has_tls)
{
  GInetAddress *address = g_inet_socket_address_get_address (from);
  gchar *ip = g_inet_address_to_string (address);
  gchar *peer = g_strdup_printf (
      strchr (ip, ':') ? "[%s]:%u" : "%s:%u", ip, g_inet_socket_address_get_port (from));
  HttpConnection *connection;

  if (may_enter (self, address, peer)) {
    if (has_tls)
      tls_front_switch (socket);
    connection = http_connection_new (&self->context, socket, address, peer, has_tls);
    g_mutex_lock (&self->lock);
    g_hash_table_add (self->open, connection);
    http_counts_add_connections (1);
    g_mutex_unlock (&self->lock);
    http_connection_start (connection);
  } else {
    answer_busy (socket);
    g_object_unref (socket);
  }
  g_free (peer);
  g_free (ip);
}

static gboolean
on_connection (GSocket *listening, GIOCondition condition, gpointer data)
{
  GSocket *socket = g_socket_accept (listening, NULL, NULL);
  GSocketAddress *from = socket ? g_socket_get_remote_address (socket, NULL) : NULL;

  if (from && G_IS_INET_SOCKET_ADDRESS (from))
    serve (data, g_steal_pointer (&socket), G_INET_SOCKET_ADDRESS (from), FALSE);
  g_clear_object (&from);
  g_clear_object (&socket);
  return G_SOURCE_CONTINUE;
}

static void
on_tls_client (GSocket *client, gpointer data)
{
  GSocketAddress *from = g_object_ref (tls_front_get_peer (client));

  serve (data, client, G_INET_SOCKET_ADDRESS (from), TRUE);
  g_object_unref (from);
}

// ---- construction ----

static gboolean
listen_plain (HttpOutlet *self, GError **error)
{
  GInetAddress *address = g_inet_address_new_from_string (self->listen.address);
  GSocketAddress *at = g_inet_socket_address_new (address, self->listen.port);

  self->listening = g_socket_new (
      g_inet_address_get_family (address), G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, error);
  g_object_unref (address);
  if (self->listening)
    g_socket_set_listen_backlog (self->listening, BACKLOG);
  if (!self->listening || !g_socket_bind (self->listening, at, TRUE, error)
      || !g_socket_listen (self->listening, error)) {
    g_prefix_error (
        error, "cannot listen on %s port %u: ", self->listen.address, self->listen.port);
    g_object_unref (at);
    return FALSE;
  }
  g_object_unref (at);
  g_socket_set_blocking (self->listening, FALSE);
  self->accept = g_socket_create_source (self->listening, G_IO_IN | G_IO_ERR | G_IO_HUP, NULL);
  g_source_set_callback (self->accept, G_SOURCE_FUNC (on_connection), self, NULL);
  g_source_attach (self->accept, NULL);
  return TRUE;
}

static gboolean
start (HttpOutlet *self, TlsFront *front, GError **error)
{
  self->context.poll = http_poll_new (http_connection_ready, http_connection_drop, error);
  if (!self->context.poll)
    return FALSE;
  self->context.workers = weir_workers_new (MIN (g_get_num_processors (), THREADS_MAX), 0);
  if (!self->context.workers) {
    g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno), "cannot serve HTTP: %s",
        g_strerror (errno));
    return FALSE;
  }
  if (self->listen.address && !listen_plain (self, error))
    return FALSE;
  if (self->tls_listen.address)
    self->tls = tls_port_new (
        front, self->tls_listen.address, self->tls_listen.port, on_tls_client, self, error);
  return self->tls || !self->tls_listen.address;
}

HttpOutlet *
http_outlet_new (
    const HttpConfig *config, Mounts *mounts, Access *access, TlsFront *front, GError **error)
{
  HttpOutlet *self = g_new0 (HttpOutlet, 1);

  g_mutex_init (&self->lock);
  self->context =
      (HttpContext) { .mounts = mounts, .access = access, .ended = on_ended, .data = self };
  self->connections = connections_new ();
  self->open = g_hash_table_new (NULL, NULL);
  self->listen = (ListenAddress) { g_strdup (config->listen.address), config->listen.port };
  self->tls_listen =
      (ListenAddress) { g_strdup (config->tls_listen.address), config->tls_listen.port };
  if (!start (self, front, error))
    g_clear_pointer (&self, http_outlet_free);
  return self;
}

static guint16
get_port (GSocket *listening)
{
  GSocketAddress *bound = g_socket_get_local_address (listening, NULL);
  guint16 port = bound ? g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (bound)) : 0;

  g_clear_object (&bound);
  return port;
}

GStrv
http_outlet_dup_base_urls (HttpOutlet *self)
{
  GStrv urls = g_new0 (gchar *, 3), next = urls;
  ListenAddress at;

  if (self->listening) {
    at = (ListenAddress) { self->listen.address, get_port (self->listening) };
    *next++ = listen_address_dup_url (&at, "http");
  }
  if (self->tls) {
    at = (ListenAddress) { self->tls_listen.address, tls_port_get_number (self->tls) };
    *next++ = listen_address_dup_url (&at, "https");
  }
  return urls;
}

// ---- the end ----

static void
stop_listening (HttpOutlet *self)
{
  if (self->accept)
    g_source_destroy (self->accept);
  g_clear_pointer (&self->accept, g_source_unref);
  g_clear_object (&self->listening);
  g_clear_pointer (&self->tls, tls_port_free);
}

// With the lock held, so that no connection is freed meanwhile.
static void
close_all (HttpOutlet *self)
{
  GHashTableIter iter;
  gpointer connection;

  g_mutex_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->open);
  while (g_hash_table_iter_next (&iter, &connection, NULL))
    http_connection_close (connection);
  g_mutex_unlock (&self->lock);
}

static guint
n_open (HttpOutlet *self)
{
  guint n;

  g_mutex_lock (&self->lock);
  n = g_hash_table_size (self->open);
  g_mutex_unlock (&self->lock);
  return n;
}

gboolean
http_outlet_stop (HttpOutlet *self, guint timeout_ms)
{
  gint64 deadline = g_get_monotonic_time () + (gint64) timeout_ms * 1000;

  stop_listening (self);
  close_all (self);
  // A decision of the door may come from the main thread.
  while (n_open (self) > 0 && g_get_monotonic_time () < deadline) {
    g_usleep (STOP_TICK_MS * 1000);
    while (g_main_context_iteration (NULL, FALSE))
      ;
  }
  return n_open (self) == 0;
}

void
http_outlet_free (HttpOutlet *self)
{
  stop_listening (self);
  g_clear_pointer (&self->context.poll, http_poll_free);
  g_clear_pointer (&self->context.workers, weir_workers_free);
  connections_unref (self->connections);
  g_hash_table_unref (self->open);
  g_free (self->listen.address);
  g_free (self->tls_listen.address);
  g_mutex_clear (&self->lock);
  g_free (self);
}
