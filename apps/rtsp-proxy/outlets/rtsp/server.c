// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/server.h"

#include "base/log.h"
#include "config/mounts_check.h"
#include "graph/graph.h"
#include "mounts/offer.h"
#include "outlets/rtsp/client.h"
#include "outlets/rtsp/client_check.h"
#include "outlets/rtsp/entry.h"
#include "outlets/rtsp/media.h"
#include "outlets/rtsp/threads.h"
#include "outlets/rtsp/title_outlet.h"
#include "outlets/rtsp/tls_outlet.h"
#include "outlets/ts/ts_stream.h"
#include "readers/adaptation.h"
#include "readers/relief.h"
#include "readers/totals.h"
#include "sources/upstream.h"
#include "weir-rtsp.h"

#include <string.h>

#define CLEANUP_INTERVAL_S 2
#define MEMORY_INTERVAL_S 1

typedef struct {
  GstRTSPServer parent;
  Server *server;
} Listener;

typedef struct {
  GstRTSPServerClass parent_class;
} ListenerClass;

struct _Server {
  Listener *listener;
  GstRTSPMountPoints *points;
  Graph *graph;
  StageSet *stages;
  MountContext context;
  Mounts *mounts;
  Access *access;
  GSocket *socket; // NULL: readers connect over TLS only
  Entry *entry;
  TlsOutlet *tls; // NULL: no TLS
  guint cleanup, adaptation, memory;
  gchar *address;
};

Mounts *
server_get_mounts (Server *self)
{
  return self->mounts;
}

// ---- mount points of gst-rtsp-server ----

typedef struct {
  GstRTSPMountPoints parent;
} Points;

typedef struct {
  GstRTSPMountPointsClass parent_class;
} PointsClass;

GType points_get_type (void);
G_DEFINE_TYPE (Points, points, GST_TYPE_RTSP_MOUNT_POINTS)

// gst-rtsp-server calls this for a DESCRIBE, and the client's class for all other requests. Only
// the client knows which content it uses.
static gchar *
points_make_path (GstRTSPMountPoints *points, const GstRTSPUrl *url)
{
  GstRTSPClient *client = gst_rtsp_context_get_current ()->client;

  return GST_RTSP_CLIENT_GET_CLASS (client)->make_path_from_uri (client, url);
}

static void
points_init (Points *self)
{
}

static void
points_class_init (PointsClass *klass)
{
  GST_RTSP_MOUNT_POINTS_CLASS (klass)->make_path = points_make_path;
}

// ---- server of gst-rtsp-server ----

GType listener_get_type (void);
G_DEFINE_TYPE (Listener, listener, GST_TYPE_RTSP_SERVER)

static GstRTSPClient *
listener_create_client (GstRTSPServer *server)
{
  Server *self = ((Listener *) server)->server;

  return entry_admit (self->entry) ? client_new (server, self->mounts, self->access) : NULL;
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
  Closing closing = { presentation, reason };
  GList *none =
      gst_rtsp_server_client_filter (GST_RTSP_SERVER (self->listener), close_reader, &closing);

  g_list_free_full (none, g_object_unref);
  ts_stream_close_readers (presentation);
}

static void
publish (Presentation *presentation, gpointer data)
{
  Server *self = data;
  gchar *address = gst_rtsp_server_get_address (GST_RTSP_SERVER (self->listener));

  gst_rtsp_mount_points_add_factory (self->points, presentation_get_path (presentation),
      media_factory_new (presentation, strchr (address, ':') != NULL));
  g_free (address);
}

static void
withdraw (const gchar *path, gpointer data)
{
  Server *self = data;

  gst_rtsp_mount_points_remove_factory (self->points, path);
}

static void
open_media (Presentation *presentation, gpointer data)
{
  Server *self = data;
  GstRTSPMediaFactory *factory =
      gst_rtsp_mount_points_match (self->points, presentation_get_path (presentation), NULL);

  if (factory)
    media_factory_open (factory);
  else
    presentation_media_opened (presentation, "the mount is being removed");
  g_clear_object (&factory);
}

static void
configure_media (Presentation *presentation, gpointer media, gpointer data)
{
  media_configure (media, presentation);
}

static const MountOutlet outlet = { publish, withdraw, open_media, configure_media, close_readers };

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

Access *
server_get_access (Server *self)
{
  return self->access;
}

guint
server_count_connections (Server *self)
{
  return entry_count (self->entry);
}

Graph *
server_get_graph (Server *self)
{
  return self->graph;
}

StageSet *
server_get_stages (Server *self)
{
  return self->stages;
}

void
server_set_stages (Server *self, StageSet *stages)
{
  stage_set_ref (stages);
  stage_set_unref (self->stages);
  self->stages = stages;
}

// ---- construction ----

static GstRTSPFilterResult
check_client (GstRTSPServer *server, GstRTSPClient *client, gpointer unused)
{
  client_check (client);
  return GST_RTSP_FILTER_KEEP;
}

static gboolean
is_served (const gchar *path, gpointer mounts)
{
  Mount *mount = mounts_get (mounts, path);
  gboolean served = mount != NULL;

  g_clear_pointer (&mount, mount_unref);
  return served;
}

static gboolean
cleanup_sessions (gpointer data)
{
  Server *self = data;
  GstRTSPServer *listener = GST_RTSP_SERVER (self->listener);

  g_list_free_full (gst_rtsp_server_client_filter (listener, check_client, NULL), g_object_unref);
  totals_collect (is_served, self->mounts);
  return G_SOURCE_CONTINUE;
}

static gboolean
watch_memory (gpointer unused)
{
  relief_run ();
  return G_SOURCE_CONTINUE;
}

// Gives readers the mount's new priority, except readers whose own priority was changed.
static void
update_readers_priority (const gchar *path, guint from, guint to)
{
  GPtrArray *readers = from != to ? readers_dup_all () : NULL;

  for (guint i = 0; readers && i < readers->len; i++) {
    Reader *reader = g_ptr_array_index (readers, i);
    ReaderSample sample;

    if (!g_str_equal (reader_get_mount (reader), path))
      continue;
    reader_sample (reader, &sample);
    if (sample.priority == from)
      reader_set_priority (reader, to);
  }
  g_clear_pointer (&readers, g_ptr_array_unref);
}

static gboolean
change_mount (Mount *mount, MountConfig *config, GError **error)
{
  guint priority = mount_get_config (mount)->priority;

  if (!mount_configure (mount, config, error))
    return FALSE;
  update_readers_priority (config->path, priority, config->priority);
  log_event ("mount %s changed", config->path);
  return TRUE;
}

gboolean
server_put_mount (Server *self, MountConfig *config, GError **error)
{
  Mount *mount = mounts_get (self->mounts, config->path);
  gboolean done;

  if (mount && mount_lacks (mount) && !config->lack) { // nothing of it could be kept
    g_clear_pointer (&mount, mount_unref);
    server_remove_mount (self, config->path, "it lacks nothing any more, and is made anew");
  }
  if (mount) {
    done = change_mount (mount, config, error);
    mount_unref (mount);
    return done;
  }
  mount = mounts_add (self->mounts, config, error);
  if (!mount)
    return FALSE;
  log_event ("mount %s added", config->path);
  mount_start (mount);
  return TRUE;
}

gboolean
server_remove_mount (Server *self, const gchar *path, const gchar *reason)
{
  Mount *mount = mounts_get (self->mounts, path);
  GPtrArray *presentations;

  if (!mount)
    return FALSE;
  mounts_remove (self->mounts, path);
  log_event ("mount %s removed: %s", path, reason);
  presentations = mount_dup_presentations (mount);
  // Stop the mount first, so that a client that has found it but does not use it yet is refused.
  mount_stop (mount);
  for (guint i = 0; i < presentations->len; i++)
    close_readers (g_ptr_array_index (presentations, i), reason, self);
  g_ptr_array_unref (presentations);
  mount_unref (mount);
  return TRUE;
}

static void
start_mounts (Server *self)
{
  GPtrArray *mounts = mounts_dup_all (self->mounts);

  for (guint i = 0; i < mounts->len; i++)
    mount_start (g_ptr_array_index (mounts, i));
  g_ptr_array_unref (mounts);
}

static void
make_listener (Server *self, const ProxyConfig *config)
{
  gchar *port = g_strdup_printf ("%u", config->listen.port);
  GstRTSPServer *listener;

  self->listener = g_object_new (listener_get_type (), NULL);
  self->listener->server = self;
  self->entry = entry_new (GST_RTSP_SERVER (self->listener));
  listener = GST_RTSP_SERVER (self->listener);
  gst_rtsp_server_set_address (listener, config->listen.address);
  gst_rtsp_server_set_service (listener, port);
  gst_rtsp_server_set_backlog (listener, SERVER_BACKLOG);
  g_free (port);
}

static void
make_context (Server *self)
{
  GstRTSPServer *listener = GST_RTSP_SERVER (self->listener);
  GstRTSPThreadPool *threads = rtsp_threads_new ();

  gst_rtsp_server_set_thread_pool (listener, threads);
  g_object_unref (threads);
  self->points = g_object_new (points_get_type (), NULL);
  gst_rtsp_server_set_mount_points (listener, self->points);
  self->graph = graph_new ();
  self->context =
      (MountContext) { self->graph, &outlet, self, &title_outlet, G_OBJECT (self->points) };
  self->mounts = mounts_new (&self->context);
}

static gboolean
add_mounts (Server *self, const ProxyConfig *config, GError **error)
{
  for (guint i = 0; i < config->mounts->len; i++) {
    if (!mounts_add (self->mounts, g_ptr_array_index (config->mounts, i), error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
listen_plain (Server *self, const ListenAddress *listen, GError **error)
{
  GstRTSPServer *listener = GST_RTSP_SERVER (self->listener);

  self->address = g_strdup (listen->address);
  self->socket = gst_rtsp_server_create_socket (listener, NULL, error);
  if (!self->socket) {
    g_prefix_error (error, "cannot listen on %s port %u: ", listen->address, listen->port);
    return FALSE;
  }
  entry_listen (self->entry, self->socket);
  return TRUE;
}

static gboolean
begin_listening (Server *self, const ProxyConfig *config, GError **error)
{
  GstRTSPServer *listener = GST_RTSP_SERVER (self->listener);

  limits_set (&config->limits);
  offer_configure (config);
  if (!weir_serve (listener, error))
    return FALSE;
  if (!config->listen_off && !listen_plain (self, &config->listen, error))
    return FALSE;
  if (!config->tls.pair)
    return TRUE;
  self->tls = tls_outlet_new (self->entry, &config->tls, error);
  return self->tls != NULL;
}

Server *
server_new (ProxyConfig *config, GError **error)
{
  Server *self = g_new0 (Server, 1);

  make_listener (self, config);
  make_context (self);
  self->access = access_new (config);
  self->stages = stage_set_ref (config->stage_set);
  if (!add_mounts (self, config, error) || !begin_listening (self, config, error)) {
    server_free (self);
    return NULL;
  }
  self->cleanup = g_timeout_add_seconds (CLEANUP_INTERVAL_S, cleanup_sessions, self);
  watch_memory (NULL);
  self->memory = g_timeout_add_seconds (MEMORY_INTERVAL_S, watch_memory, NULL);
  self->adaptation = g_timeout_add (ADAPTATION_INTERVAL_MS, adaptation_run, NULL);
  start_mounts (self);
  return self;
}

static guint16
get_port (Server *self)
{
  GSocketAddress *bound = g_socket_get_local_address (self->socket, NULL);
  guint16 port = bound ? g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (bound)) : 0;

  g_clear_object (&bound);
  return port;
}

// Writes where readers can connect, and then an entry without an address.
static void
list_listen (Server *self, ListenAddress own[3])
{
  if (self->socket)
    *own++ = (ListenAddress) { self->address, get_port (self) };
  if (self->tls)
    tls_outlet_get_listen (self->tls, own++);
  *own = (ListenAddress) { NULL };
}

gchar *
server_check_mount (Server *self, MountConfig *config)
{
  GPtrArray *mounts = mounts_dup_all (self->mounts), *configs = g_ptr_array_new ();
  gchar *wrong, *text;
  ListenAddress own[3];

  list_listen (self, own);
  for (guint i = 0; i < mounts->len; i++) {
    Mount *mount = g_ptr_array_index (mounts, i);

    if (!g_str_equal (mount_get_path (mount), config->path))
      g_ptr_array_add (configs, (gpointer) mount_get_config (mount));
  }
  g_ptr_array_add (configs, config);
  wrong = mounts_check (configs, config, own);
  text = wrong ? g_strdup_printf ("%s: %s", config->path, wrong) : NULL;
  g_free (wrong);
  g_ptr_array_unref (configs);
  g_ptr_array_unref (mounts);
  return text;
}

GStrv
server_dup_base_urls (Server *self)
{
  ListenAddress own[3];
  GStrv urls = g_new0 (gchar *, G_N_ELEMENTS (own));

  list_listen (self, own);
  for (guint i = 0; own[i].address; i++)
    urls[i] = listen_address_dup_url (&own[i], i > 0 || !self->socket ? "rtsps" : "rtsp");
  return urls;
}

TlsFront *
server_get_tls (Server *self)
{
  return self->tls ? tls_outlet_get_front (self->tls) : NULL;
}

void
server_reload_tls (Server *self)
{
  if (self->tls)
    tls_outlet_reload (self->tls);
}

static void
stop_mounts (Server *self)
{
  GPtrArray *mounts = mounts_dup_all (self->mounts);

  for (guint i = 0; i < mounts->len; i++)
    mount_stop (g_ptr_array_index (mounts, i));
  g_ptr_array_unref (mounts);
}

static gboolean
wake (gpointer data)
{
  return G_SOURCE_CONTINUE;
}

gboolean
server_stop (Server *self, guint timeout_ms)
{
  gint64 deadline = g_get_monotonic_time () + (gint64) timeout_ms * 1000;
  guint waker;
  gboolean closed;

  entry_stop (self->entry);
  if (self->socket)
    g_socket_close (self->socket, NULL);
  if (self->tls)
    tls_outlet_stop (self->tls);
  g_list_free_full (gst_rtsp_server_client_filter (GST_RTSP_SERVER (self->listener), close_any,
                        (gpointer) "the proxy is stopping"),
      g_object_unref);
  stop_mounts (self);

  waker = g_timeout_add (20, wake, NULL);
  while (!(closed = n_clients (self) == 0 && upstream_n_closing () == 0
                    && (!self->tls || tls_front_n_open (tls_outlet_get_front (self->tls)) == 0))
         && g_get_monotonic_time () < deadline)
    g_main_context_iteration (NULL, TRUE);
  g_source_remove (waker);
  return closed;
}

void
server_free (Server *self)
{
  if (self->cleanup)
    g_source_remove (self->cleanup);
  if (self->memory)
    g_source_remove (self->memory);
  if (self->adaptation)
    g_source_remove (self->adaptation);
  g_clear_pointer (&self->tls, tls_outlet_free);
  g_clear_pointer (&self->entry, entry_free);
  g_clear_object (&self->socket);
  g_clear_object (&self->listener);
  g_clear_pointer (&self->mounts, mounts_free);
  while (g_main_context_iteration (NULL, FALSE)) // frees the mounts
    ;
  g_clear_object (&self->points);
  g_clear_pointer (&self->graph, graph_free);
  g_clear_pointer (&self->stages, stage_set_unref);
  g_clear_pointer (&self->access, access_free);
  totals_clear ();
  g_free (self->address);
  g_free (self);
}
