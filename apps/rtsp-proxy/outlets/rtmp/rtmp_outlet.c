// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtmp/rtmp_outlet.h"

#include "base/log.h"
#include "base/port.h"
#include "outlets/rtmp/rtmp_connection.h"

typedef struct {
  RtmpContext context;
  ListenAddress listen, tls_listen;
  Port *plain, *tls; // NULL: none
  TlsFront *front;
  GHashTable *connections; // the thread's
} RtmpOutlet;

// ---- connections; the thread ----

static void
on_ended (RtmpConnection *connection, const gchar *reason, gpointer outlet)
{
  g_hash_table_remove (((RtmpOutlet *) outlet)->connections, connection);
  rtmp_connection_free (connection, reason);
}

typedef struct {
  RtmpOutlet *outlet;
  GSocket *socket;
  GInetSocketAddress *from;
  gboolean has_tls;
} Arrival;

static void
arrival_free (Arrival *arrival)
{
  g_object_unref (arrival->socket);
  g_object_unref (arrival->from);
  g_free (arrival);
}

static void
on_arrival (gpointer data)
{
  Arrival *arrival = data;
  RtmpOutlet *self = arrival->outlet;
  RtmpConnection *connection = rtmp_connection_new (
      &self->context, g_object_ref (arrival->socket), arrival->from, arrival->has_tls);

  if (connection) {
    g_hash_table_add (self->connections, connection);
    rtmp_connection_start (connection);
  }
  arrival_free (arrival);
}

static void
drop_all (gpointer outlet)
{
  RtmpOutlet *self = outlet;
  GList *all = g_hash_table_get_keys (self->connections);

  for (GList *l = all; l; l = l->next)
    on_ended (l->data, "the proxy stops", self);
  g_list_free (all);
}

// ---- the port; main thread ----

static gboolean
may_enter (RtmpOutlet *self, GInetSocketAddress *from)
{
  return connections_admit (self->context.callers->connections,
      g_inet_socket_address_get_address (from), "RTMP connections", NULL, NULL);
}

// Takes ownership of the socket.
static void
take (RtmpOutlet *self, GSocket *socket, GInetSocketAddress *from, gboolean has_tls)
{
  Arrival *arrival = g_new (Arrival, 1);

  g_socket_set_blocking (socket, FALSE);
  *arrival = (Arrival) { self, socket, g_object_ref (from), has_tls };
  caller_context_post (self->context.callers, on_arrival, arrival);
}

static void
on_connection (GSocket *listening, gpointer data)
{
  RtmpOutlet *self = data;
  g_autoptr (GSocket) socket = g_socket_accept (listening, NULL, NULL);
  g_autoptr (GSocketAddress) from = socket ? g_socket_get_remote_address (socket, NULL) : NULL;

  if (from && G_IS_INET_SOCKET_ADDRESS (from) && may_enter (self, G_INET_SOCKET_ADDRESS (from)))
    take (self, g_steal_pointer (&socket), G_INET_SOCKET_ADDRESS (from), FALSE);
}

static void
on_tls_client (GSocket *client, gpointer data)
{
  GInetSocketAddress *from = G_INET_SOCKET_ADDRESS (g_object_ref (tls_front_get_peer (client)));

  if (may_enter (data, from)) {
    tls_front_switch (client);
    take (data, client, from, TRUE);
  } else {
    g_object_unref (client);
  }
  g_object_unref (from);
}

static void
on_tls_connection (GSocket *listening, gpointer data)
{
  tls_front_accept (((RtmpOutlet *) data)->front, listening, on_tls_client, data);
}

// ---- construction ----

// Returns FALSE if there is an address at which it cannot listen.
static gboolean
start_listening (RtmpOutlet *self, GError **error)
{
  const ListenAddress *at = &self->listen, *tls_at = &self->tls_listen;

  if (at->address)
    self->plain = port_new (at->address, at->port, on_connection, NULL, self, error);
  if (at->address && !self->plain)
    return FALSE;
  if (tls_at->address)
    self->tls = port_new (tls_at->address, tls_at->port, on_tls_connection, NULL, self, error);
  return self->tls || !tls_at->address;
}

// ---- the end ----

static gboolean
stop (gpointer data, guint timeout_ms)
{
  RtmpOutlet *self = data;

  g_clear_pointer (&self->plain, port_free);
  g_clear_pointer (&self->tls, port_free);
  caller_context_post (self->context.callers, drop_all, self);
  caller_context_stop (self->context.callers);
  g_hash_table_unref (self->connections);
  g_free (self->listen.address);
  g_free (self->tls_listen.address);
  caller_context_unref (self->context.callers);
  g_free (self);
  return TRUE;
}

// ---- construction ----

static void
log_port (const gchar *scheme, const ListenAddress *listen, Port *port)
{
  ListenAddress at = { listen->address, port ? port_get_number (port) : 0 };
  g_autofree gchar *url = port ? listen_address_dup_url (&at, scheme) : NULL;

  if (url)
    log_event ("takes publishers at %s", url);
}

static gpointer
start (Proxy *proxy, ProxyConfig *config, GError **error)
{
  const ListenAddress *listen = &config->rtmp.listen, *tls_listen = &config->rtmp.tls_listen;
  CallerContext *callers;
  RtmpOutlet *self;

  if (!listen->address && !tls_listen->address)
    return NULL;
  callers = caller_context_new (proxy_get_mounts (proxy), proxy_get_access (proxy), "rtmp", error);
  if (!callers)
    return NULL;
  self = g_new0 (RtmpOutlet, 1);
  self->context = (RtmpContext) { callers, on_ended, self };
  self->listen = (ListenAddress) { g_strdup (listen->address), listen->port };
  self->tls_listen = (ListenAddress) { g_strdup (tls_listen->address), tls_listen->port };
  self->front = proxy_get_tls (proxy);
  self->connections = g_hash_table_new (NULL, NULL);
  if (!start_listening (self, error)) {
    stop (self, 0);
    return NULL;
  }
  log_port ("rtmp", &self->listen, self->plain);
  log_port ("rtmps", &self->tls_listen, self->tls);
  return self;
}

const Outlet rtmp_outlet = { start, stop, NULL };
