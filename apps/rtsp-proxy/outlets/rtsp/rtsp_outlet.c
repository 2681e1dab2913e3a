// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/rtsp_outlet.h"

#include "base/log.h"
#include "base/main_loop.h"
#include "outlets/rtsp/client.h"
#include "outlets/rtsp/client_check.h"
#include "outlets/rtsp/entry.h"
#include "outlets/rtsp/media.h"
#include "outlets/rtsp/threads.h"
#include "outlets/rtsp/title_outlet.h"
#include "outlets/rtsp/tls_outlet.h"
#include "weir-rtsp.h"

#include <string.h>

#define CHECK_INTERVAL_S 2

typedef struct _Server Server;

typedef struct {
  GstRTSPServer parent;
  Server *server;
} Listener;

typedef struct {
  GstRTSPServerClass parent_class;
} ListenerClass;

struct _Server {
  Listener *listener;
  Proxy *proxy;
  GstRTSPMountPoints *points;
  GSocket *socket; // NULL: readers connect over TLS only
  gchar *address;
  Entry *entry;
  TlsOutlet *tls; // NULL: no TLS
  guint check;
};

// ---- server of gst-rtsp-server ----

GType listener_get_type (void);
G_DEFINE_TYPE (Listener, listener, GST_TYPE_RTSP_SERVER)

static GstRTSPClient *
listener_create_client (GstRTSPServer *server)
{
  Server *self = ((Listener *) server)->server;

  return entry_admit (self->entry)
             ? client_new (server, proxy_get_mounts (self->proxy), proxy_get_access (self->proxy))
             : NULL;
}

static void
listener_client_connected (GstRTSPServer *server, GstRTSPClient *client)
{
  client_connected (client);
  entry_begin (((Listener *) server)->server->entry, client, client_get_peer (client));
}

static void
listener_init (Listener *self)
{
}

static void
listener_class_init (ListenerClass *klass)
{
  GST_RTSP_SERVER_CLASS (klass)->create_client = listener_create_client;
  GST_RTSP_SERVER_CLASS (klass)->client_connected = listener_client_connected;
}

// ---- the outlet of mounts ----

typedef struct {
  Presentation *presentation;
  const gchar *reason;
} Closing;

static GstRTSPFilterResult
close_reader (GstRTSPServer *server, GstRTSPClient *client, gpointer data)
{
  Closing *closing = data;

  client_close (client, closing->presentation, closing->reason);
  return GST_RTSP_FILTER_KEEP;
}

static void
close_readers (Presentation *presentation, const gchar *reason, gpointer data)
{
  Server *self = data;
  LiveMedia *live = media_find_live (self->points, presentation_get_path (presentation));
  Closing closing = { presentation, reason };
  GList *none;

  if (live)
    live_media_retire (live);
  none = gst_rtsp_server_client_filter (GST_RTSP_SERVER (self->listener), close_reader, &closing);

  g_list_free_full (none, g_object_unref);
  if (live)
    live_media_update (live);
  g_clear_pointer (&live, live_media_unref);
}

static void
publish (Presentation *presentation, gpointer data)
{
  Server *self = data;
  g_autofree gchar *address = gst_rtsp_server_get_address (GST_RTSP_SERVER (self->listener));

  gst_rtsp_mount_points_add_factory (self->points, presentation_get_path (presentation),
      media_factory_new (presentation, strchr (address, ':') != NULL));
}

static void
withdraw (const gchar *path, gpointer data)
{
  Server *self = data;
  GstRTSPMediaFactory *factory = gst_rtsp_mount_points_match (self->points, path, NULL);

  gst_rtsp_mount_points_remove_factory (self->points, path);
  if (factory)
    media_factory_stop (factory);
  g_clear_object (&factory);
}

static void
changed (Presentation *presentation, gpointer data)
{
  Server *self = data;
  LiveMedia *live = media_find_live (self->points, presentation_get_path (presentation));

  if (!live) // it is being withdrawn
    return;
  if (live_media_configure (live))
    live_media_update (live);
  else
    proxy_close_readers (
        self->proxy, presentation, "the mount's cache or fan-out has changed, and begins anew");
  live_media_unref (live);
}

static const MountOutlet outlet = { publish, withdraw, changed };

static GstRTSPFilterResult
count_client (GstRTSPServer *server, GstRTSPClient *client, gpointer data)
{
  ++*(guint *) data;
  return GST_RTSP_FILTER_KEEP;
}

static guint
n_clients (Server *self)
{
  guint n = 0;

  g_list_free_full (
      gst_rtsp_server_client_filter (GST_RTSP_SERVER (self->listener), count_client, &n),
      g_object_unref);
  return n;
}

static GstRTSPFilterResult
close_any (GstRTSPServer *server, GstRTSPClient *client, gpointer data)
{
  client_close (client, NULL, data);
  return GST_RTSP_FILTER_KEEP;
}

// ---- construction ----

static GstRTSPFilterResult
check_client (GstRTSPServer *server, GstRTSPClient *client, gpointer unused)
{
  client_check (client);
  return GST_RTSP_FILTER_KEEP;
}

static gboolean
check_clients (gpointer data)
{
  Server *self = data;
  GstRTSPServer *listener = GST_RTSP_SERVER (self->listener);

  g_list_free_full (gst_rtsp_server_client_filter (listener, check_client, NULL), g_object_unref);
  return G_SOURCE_CONTINUE;
}

static void
make_listener (Server *self, const ProxyConfig *config)
{
  g_autofree gchar *port = g_strdup_printf ("%u", config->listen.port);
  GstRTSPServer *listener;

  self->listener = g_object_new (listener_get_type (), NULL);
  self->listener->server = self;
  self->entry = entry_new (GST_RTSP_SERVER (self->listener));
  listener = GST_RTSP_SERVER (self->listener);
  gst_rtsp_server_set_address (listener, config->listen.address);
  gst_rtsp_server_set_service (listener, port);
  gst_rtsp_server_set_backlog (listener, RTSP_BACKLOG);
}

static void
make_points (Server *self)
{
  GstRTSPServer *listener = GST_RTSP_SERVER (self->listener);
  GstRTSPThreadPool *threads = rtsp_threads_new ();

  gst_rtsp_server_set_thread_pool (listener, threads);
  g_object_unref (threads);
  self->points = client_points_new ();
  gst_rtsp_server_set_mount_points (listener, self->points);
  proxy_present (self->proxy, &outlet, self, &title_outlet, G_OBJECT (self->points));
  proxy_add_closer (self->proxy, close_readers, self);
}

static guint16
get_port (Server *self)
{
  g_autoptr (GSocketAddress) bound = g_socket_get_local_address (self->socket, NULL);

  return bound ? g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (bound)) : 0;
}

static gboolean
listen_plain (Server *self, const ListenAddress *listen, GError **error)
{
  GstRTSPServer *listener = GST_RTSP_SERVER (self->listener);
  ListenAddress own = { listen->address };

  self->socket = gst_rtsp_server_create_socket (listener, NULL, error);
  if (!self->socket) {
    g_prefix_error (error, "cannot listen on %s port %u: ", listen->address, listen->port);
    return FALSE;
  }
  entry_listen (self->entry, self->socket);
  own.port = get_port (self);
  proxy_add_listen (self->proxy, "rtsp", &own);
  return TRUE;
}

static void
listen_tls (Server *self, const ListenAddress *listen, GError **error)
{
  ListenAddress own = { listen->address };

  self->tls = tls_outlet_new (self->entry, proxy_get_tls (self->proxy), listen, error);
  if (!self->tls)
    return;
  own.port = tls_outlet_get_port (self->tls);
  proxy_add_listen (self->proxy, "rtsps", &own);
}

static void
server_free (gpointer data)
{
  Server *self = data;

  g_source_remove (self->check);
  g_clear_pointer (&self->tls, tls_outlet_free);
  g_clear_pointer (&self->entry, entry_free);
  g_clear_object (&self->socket);
  g_clear_object (&self->listener);
  g_clear_object (&self->points);
  g_free (self);
}

static gpointer
start (Proxy *proxy, ProxyConfig *config, GError **error)
{
  Server *self = g_new0 (Server, 1);

  self->proxy = proxy;
  make_listener (self, config);
  make_points (self);
  self->check = g_timeout_add_seconds (CHECK_INTERVAL_S, check_clients, self);
  if (proxy_add_mounts (proxy, config, error)
      && weir_serve (GST_RTSP_SERVER (self->listener), error)
      && (config->listen.is_off || listen_plain (self, &config->listen, error)) && config->tls.pair)
    listen_tls (self, &config->tls.listen, error);
  return self; // the mounts refer to it
}

static gboolean
is_closed (gpointer self)
{
  return n_clients (self) == 0;
}

static gboolean
stop (gpointer data, guint timeout_ms)
{
  Server *self = data;

  entry_stop (self->entry);
  if (self->socket)
    g_socket_close (self->socket, NULL);
  if (self->tls)
    tls_outlet_stop (self->tls);
  g_list_free_full (gst_rtsp_server_client_filter (GST_RTSP_SERVER (self->listener), close_any,
                        (gpointer) "the proxy is stopping"),
      g_object_unref);
  return main_loop_wait (is_closed, self, timeout_ms);
}

const Outlet rtsp_outlet = { start, stop, server_free };
