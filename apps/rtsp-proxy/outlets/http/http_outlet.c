// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/http/http_outlet.h"

#include "access/connections.h"
#include "base/log.h"
#include "base/main_loop.h"
#include "base/port.h"
#include "outlets/http/http_connection.h"
#include "outlets/http/http_counts.h"

#include <errno.h>

#define THREADS_MAX 4 // they never wait for a disk or a client

struct _HttpOutlet {
  HttpContext context;
  Connections *connections;
  Port *plain, *tls; // NULL: none
  TlsFront *front;
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
  gchar *peer = g_socket_connectable_to_string (G_SOCKET_CONNECTABLE (from));
  HttpConnection *connection;

  if (connections_admit (self->connections, address, "connections", peer, NULL)) {
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
}

static void
on_connection (GSocket *listening, gpointer data)
{
  GSocket *socket = g_socket_accept (listening, NULL, NULL);
  GSocketAddress *from = socket ? g_socket_get_remote_address (socket, NULL) : NULL;

  if (from && G_IS_INET_SOCKET_ADDRESS (from))
    serve (data, g_steal_pointer (&socket), G_INET_SOCKET_ADDRESS (from), FALSE);
  g_clear_object (&from);
  g_clear_object (&socket);
}

static void
on_tls_client (GSocket *client, gpointer data)
{
  GSocketAddress *from = g_object_ref (tls_front_get_peer (client));

  serve (data, client, G_INET_SOCKET_ADDRESS (from), TRUE);
  g_object_unref (from);
}

static void
on_tls_connection (GSocket *listening, gpointer data)
{
  tls_front_accept (((HttpOutlet *) data)->front, listening, on_tls_client, data);
}

// ---- construction ----

// Returns FALSE if there is an address at which it cannot listen.
static gboolean
listen_at (HttpOutlet *self, const ListenAddress *at, PortFunc accept, Port **port, GError **error)
{
  if (at->address)
    *port = port_new (at->address, at->port, accept, NULL, self, error);
  return *port || !at->address;
}

static gboolean
start (HttpOutlet *self, TlsFront *front, GError **error)
{
  // Any number of sockets wakes the thread at most 2000 times a second.
  const LoopSettings settings = { .name = "http-poll", .gather_us = 500 };

  self->context.loop = loop_new (&settings, error);
  if (!self->context.loop) {
    g_prefix_error (error, "cannot serve HTTP: ");
    return FALSE;
  }
  self->context.workers = weir_workers_new (MIN (g_get_num_processors (), THREADS_MAX), 0);
  if (!self->context.workers) {
    g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno), "cannot serve HTTP: %s",
        g_strerror (errno));
    return FALSE;
  }
  self->front = front;
  return listen_at (self, &self->listen, on_connection, &self->plain, error)
         && listen_at (self, &self->tls_listen, on_tls_connection, &self->tls, error);
}

HttpOutlet *
http_outlet_new (const HttpConfig *config, gchar *const *hosts, Mounts *mounts, Access *access,
    const HttpRoute *routes, TlsFront *front, GError **error)
{
  HttpOutlet *self = g_new0 (HttpOutlet, 1);

  g_mutex_init (&self->lock);
  self->context = (HttpContext) {
    .mounts = mounts, .access = access, .routes = routes, .ended = on_ended, .data = self
  };
  self->connections = connections_new ();
  self->open = g_hash_table_new (NULL, NULL);
  self->listen = (ListenAddress) { g_strdup (config->listen.address), config->listen.port };
  self->tls_listen =
      (ListenAddress) { g_strdup (config->tls_listen.address), config->tls_listen.port };
  self->context.hosts = g_strdupv ((gchar **) hosts);
  self->context.allow_origins = g_strdupv (config->allow_origins);
  self->context.proxies = http_proxies_new (config->trusted_proxies);
  if (!start (self, front, error))
    g_clear_pointer (&self, http_outlet_free);
  return self;
}

GStrv
http_outlet_dup_base_urls (HttpOutlet *self)
{
  GStrv urls = g_new0 (gchar *, 3), next = urls;
  ListenAddress at;

  if (self->plain) {
    at = (ListenAddress) { self->listen.address, port_get_number (self->plain) };
    *next++ = listen_address_dup_url (&at, "http");
  }
  if (self->tls) {
    at = (ListenAddress) { self->tls_listen.address, port_get_number (self->tls) };
    *next++ = listen_address_dup_url (&at, "https");
  }
  return urls;
}

// ---- the end ----

static void
stop_listening (HttpOutlet *self)
{
  g_clear_pointer (&self->plain, port_free);
  g_clear_pointer (&self->tls, port_free);
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

static gboolean
is_closed (gpointer self)
{
  return n_open (self) == 0;
}

gboolean
http_outlet_stop (HttpOutlet *self, guint timeout_ms)
{
  stop_listening (self);
  close_all (self);
  // A decision on access may come from the main thread.
  return main_loop_wait (is_closed, self, timeout_ms);
}

void
http_outlet_free (HttpOutlet *self)
{
  stop_listening (self);
  g_clear_pointer (&self->context.loop, loop_free);
  g_clear_pointer (&self->context.workers, weir_workers_free);
  connections_unref (self->connections);
  g_hash_table_unref (self->open);
  g_free (self->listen.address);
  g_free (self->tls_listen.address);
  g_strfreev (self->context.hosts);
  g_strfreev (self->context.allow_origins);
  http_proxies_free (self->context.proxies);
  g_mutex_clear (&self->lock);
  g_free (self);
}
