// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtmp/rtmp_outlet.h"

#include "base/log.h"
#include "base/port.h"
#include "outlets/rtmp/rtmp_connection.h"

typedef struct {
  RtmpContext *context;
  ListenAddress listen, tls_listen;
  Port *plain, *tls; // NULL: none
  TlsFront *front;
  GMainLoop *loop;
  GThread *thread;
  GHashTable *connections; // the thread's
} RtmpOutlet;

// ---- connections; the thread ----

static void
on_ended (RtmpConnection *connection, const gchar *reason, gpointer outlet)
{
  g_hash_table_remove (((RtmpOutlet *) outlet)->connections, connection);
  rtmp_connection_free (connection, reason);
}

static gboolean
on_tick (gpointer outlet)
{
  RtmpOutlet *self = outlet;
  GList *all = g_hash_table_get_keys (self->connections);

  for (GList *l = all; l; l = l->next)
    rtmp_connection_tick (l->data);
  g_list_free (all);
  return G_SOURCE_CONTINUE;
}

typedef struct {
  RtmpOutlet *outlet;
  GSocket *socket;
  GInetSocketAddress *from;
  gboolean has_tls;
} Arrival;

static gboolean
on_arrival (gpointer data)
{
  Arrival *arrival = data;
  RtmpOutlet *self = arrival->outlet;
  RtmpConnection *connection = rtmp_connection_new (
      self->context, g_object_ref (arrival->socket), arrival->from, arrival->has_tls);

  if (connection) {
    g_hash_table_add (self->connections, connection);
    rtmp_connection_run (connection);
  }
  return G_SOURCE_REMOVE;
}

static void
arrival_free (gpointer data)
{
  Arrival *arrival = data;

  g_object_unref (arrival->socket);
  g_object_unref (arrival->from);
  g_free (arrival);
}

static gpointer
serve (gpointer data)
{
  RtmpOutlet *self = data;
  GSource *tick = g_timeout_source_new_seconds (1);

  g_main_context_push_thread_default (self->context->loop);
  g_source_set_callback (tick, on_tick, self, NULL);
  g_source_attach (tick, self->context->loop);
  g_main_loop_run (self->loop);
  g_source_destroy (tick);
  g_source_unref (tick);
  g_main_context_pop_thread_default (self->context->loop);
  return NULL;
}

// Has the thread call a function, also if it does not run the loop yet.
static void
run_later (RtmpOutlet *self, GSourceFunc function, gpointer data, GDestroyNotify free)
{
  GSource *source = g_idle_source_new ();

  g_source_set_priority (source, G_PRIORITY_DEFAULT);
  g_source_set_callback (source, function, data, free);
  g_source_attach (source, self->context->loop);
  g_source_unref (source);
}

// ---- the port; main thread ----

static gboolean
may_enter (RtmpOutlet *self, GInetSocketAddress *from)
{
  return connections_admit (self->context->connections, g_inet_socket_address_get_address (from),
      "RTMP connections", NULL, NULL);
}

// Takes ownership of the socket.
static void
take (RtmpOutlet *self, GSocket *socket, GInetSocketAddress *from, gboolean has_tls)
{
  Arrival *arrival = g_new (Arrival, 1);

  g_socket_set_blocking (socket, FALSE);
  *arrival = (Arrival) { self, socket, g_object_ref (from), has_tls };
  run_later (self, on_arrival, arrival, arrival_free);
}

static void
on_connection (GSocket *listening, gpointer data)
{
  RtmpOutlet *self = data;
  GSocket *socket = g_socket_accept (listening, NULL, NULL);
  GSocketAddress *from = socket ? g_socket_get_remote_address (socket, NULL) : NULL;

  if (from && G_IS_INET_SOCKET_ADDRESS (from) && may_enter (self, G_INET_SOCKET_ADDRESS (from)))
    take (self, g_steal_pointer (&socket), G_INET_SOCKET_ADDRESS (from), FALSE);
  g_clear_object (&from);
  g_clear_object (&socket);
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

static void
context_clear (gpointer data)
{
  RtmpContext *context = data;

  connections_unref (context->connections);
  g_main_context_unref (context->loop);
}

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
on_quit (gpointer loop)
{
  g_main_loop_quit (loop);
  return G_SOURCE_REMOVE;
}

static void
drop_all (RtmpOutlet *self)
{
  GList *all = g_hash_table_get_keys (self->connections);

  for (GList *l = all; l; l = l->next)
    on_ended (l->data, "the proxy stops", self);
  g_list_free (all);
}

static gboolean
stop (gpointer data, guint timeout_ms)
{
  RtmpOutlet *self = data;

  g_clear_pointer (&self->plain, port_free);
  g_clear_pointer (&self->tls, port_free);
  run_later (self, on_quit, self->loop, NULL);
  if (self->thread)
    g_thread_join (self->thread);
  drop_all (self);
  g_hash_table_unref (self->connections);
  g_main_loop_unref (self->loop);
  g_free (self->listen.address);
  g_free (self->tls_listen.address);
  g_atomic_rc_box_release_full (self->context, self->context->clear);
  g_free (self);
  return TRUE;
}

// ---- construction ----

static void
log_port (const gchar *scheme, const ListenAddress *listen, Port *port)
{
  ListenAddress at = { listen->address, port ? port_get_number (port) : 0 };
  gchar *url = port ? listen_address_dup_url (&at, scheme) : NULL;

  if (url)
    log_event ("takes publishers at %s", url);
  g_free (url);
}

static gpointer
start (Proxy *proxy, ProxyConfig *config, GError **error)
{
  const ListenAddress *listen = &config->rtmp.listen, *tls_listen = &config->rtmp.tls_listen;
  RtmpOutlet *self;

  if (!listen->address && !tls_listen->address)
    return NULL;
  self = g_new0 (RtmpOutlet, 1);
  self->context = g_atomic_rc_box_new0 (RtmpContext);
  *self->context = (RtmpContext) { proxy_get_mounts (proxy), proxy_get_access (proxy),
    connections_new (), g_main_context_new (), on_ended, self, context_clear };
  self->listen = (ListenAddress) { g_strdup (listen->address), listen->port };
  self->tls_listen = (ListenAddress) { g_strdup (tls_listen->address), tls_listen->port };
  self->front = proxy_get_tls (proxy);
  self->connections = g_hash_table_new (NULL, NULL);
  self->loop = g_main_loop_new (self->context->loop, FALSE);
  if (!start_listening (self, error)) {
    stop (self, 0);
    return NULL;
  }
  self->thread = g_thread_new ("rtmp", serve, self);
  log_port ("rtmp", &self->listen, self->plain);
  log_port ("rtmps", &self->tls_listen, self->tls);
  return self;
}

const Outlet rtmp_outlet = { start, stop, NULL };
