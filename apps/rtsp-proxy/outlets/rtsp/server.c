// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/server.h"

#include "base/log.h"
#include "config/mount_loop.h"
#include "graph/graph.h"
#include "outlets/rtsp/client.h"
#include "outlets/rtsp/media.h"
#include "readers/adaptation.h"
#include "readers/totals.h"
#include "sources/upstream.h"
#include "weir-rtsp.h"

#include <string.h>

#define BACKLOG 512
#define CLEANUP_INTERVAL_S 2

typedef struct {
  GstRTSPServer parent;
  Server *server;
} Listener;

typedef struct {
  GstRTSPServerClass parent_class;
} ListenerClass;

struct _Server {
  Listener *listener;
  Graph *graph;
  StageSet *stages;
  MountContext context;
  GMutex lock;
  GHashTable *mounts; // path -> Mount; changed on the main thread only, with the lock held
  GSocket *socket;
  GSource *accept;
  guint cleanup, adaptation;
  gchar *address;
};

Mount *
server_get_mount (Server *self, const gchar *path)
{
  Mount *mount;

  g_mutex_lock (&self->lock);
  mount = g_hash_table_lookup (self->mounts, path);
  if (mount)
    mount_ref (mount);
  g_mutex_unlock (&self->lock);
  return mount;
}

// A chosen presentation's own path lies below that of its mount.
static Presentation *
find_by_path (Server *self, const gchar *path)
{
  const gchar *below = g_strrstr (path, "/=");
  gchar *mount_path = below ? g_strndup (path, (gsize) (below - path)) : NULL;
  Mount *mount = mount_path ? server_get_mount (self, mount_path) : NULL;
  Presentation *found = mount ? mount_find_path (mount, path) : NULL;

  g_clear_pointer (&mount, mount_unref);
  g_free (mount_path);
  return found;
}

static Presentation *
find (const Demand *demand, gpointer data, GError **error)
{
  Server *self = data;
  Presentation *found = NULL;
  Mount *mount = server_get_mount (self, demand->path);

  if (mount)
    found = mount_find (mount, demand, error);
  else if (!demand->query)
    found = find_by_path (self, demand->path);
  if (!mount && !found)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "there is no %s", demand->path);
  if (mount && !found)
    g_prefix_error (error, "%s: ", demand->path);
  g_clear_pointer (&mount, mount_unref);
  return found;
}

static gchar *
make_path (const Demand *demand, gpointer data)
{
  Presentation *found = demand->query ? find (demand, data, NULL) : NULL;
  gchar *path;

  if (!found)
    return *demand->url ? g_strndup (demand->url, strcspn (demand->url, "?")) : g_strdup ("/");
  path = g_strconcat (presentation_get_path (found), demand->track, NULL);
  presentation_unuse (found);
  presentation_unref (found);
  return path;
}

// A title's path lies below that of a mount, of which the longest counts.
static Titles *
find_titles (const Demand *demand, gpointer data, gchar **name)
{
  Titles *titles = NULL;
  Mount *mount = NULL;
  gchar *path = g_strdup (demand->path), *slash;

  while ((slash = strrchr (path, '/')) && slash != path && !mount) {
    *slash = '\0';
    mount = server_get_mount (data, path);
  }
  if (mount && !demand->query)
    titles = mount_dup_titles (mount);
  if (titles)
    *name = g_strdup (demand->path + strlen (path) + 1);
  g_clear_pointer (&mount, mount_unref);
  g_free (path);
  return titles;
}

// ---- the library's idea of paths ----

typedef struct {
  GstRTSPMountPoints parent;
} Points;

typedef struct {
  GstRTSPMountPointsClass parent_class;
} PointsClass;

GType points_get_type (void);
G_DEFINE_TYPE (Points, points, GST_TYPE_RTSP_MOUNT_POINTS)

// The library asks here for a DESCRIBE, and the client's class for all else; what a client has
// opened only the client knows.
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

// ---- the library's server ----

GType listener_get_type (void);
G_DEFINE_TYPE (Listener, listener, GST_TYPE_RTSP_SERVER)

static GstRTSPClient *
listener_create_client (GstRTSPServer *server)
{
  static const ClientFuncs funcs = { find, make_path, find_titles };

  return client_new (server, &funcs, ((Listener *) server)->server);
}

static void
listener_client_connected (GstRTSPServer *server, GstRTSPClient *client)
{
  client_connected (client);
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

// ---- closing readers ----

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
}

static void
publish (Presentation *presentation, gpointer data)
{
  Server *self = data;

  gst_rtsp_mount_points_add_factory (
      self->context.points, presentation_get_path (presentation), media_factory_new (presentation));
}

static void
withdraw (const gchar *path, gpointer data)
{
  Server *self = data;

  gst_rtsp_mount_points_remove_factory (self->context.points, path);
}

static void
open_media (Presentation *presentation, gpointer data)
{
  Server *self = data;
  GstRTSPMediaFactory *factory = gst_rtsp_mount_points_match (
      self->context.points, presentation_get_path (presentation), NULL);

  if (factory)
    media_factory_open (factory);
  g_clear_object (&factory);
}

static void
configure_media (Presentation *presentation, GstRTSPMedia *media, gpointer data)
{
  media_configure (media, presentation);
}

static const MountOutlet outlet = { publish, withdraw, open_media, configure_media, close_readers };

static GstRTSPFilterResult
take_client (GstRTSPServer *server, GstRTSPClient *client, gpointer unused)
{
  return GST_RTSP_FILTER_REF;
}

static GList *
dup_clients (Server *self)
{
  return gst_rtsp_server_client_filter (GST_RTSP_SERVER (self->listener), take_client, NULL);
}

static gint
compare_ids (gconstpointer a, gconstpointer b)
{
  guint64 x = reader_get_id (*(Reader **) a), y = reader_get_id (*(Reader **) b);

  return x < y ? -1 : x > y;
}

GPtrArray *
server_dup_readers (Server *self)
{
  GPtrArray *readers = g_ptr_array_new_with_free_func ((GDestroyNotify) reader_unref);
  GList *clients = dup_clients (self);

  for (GList *l = clients; l; l = l->next) {
    Reader *reader = client_dup_reader (l->data);

    if (reader)
      g_ptr_array_add (readers, reader);
  }
  g_list_free_full (clients, g_object_unref);
  g_ptr_array_sort (readers, compare_ids);
  return readers;
}

gboolean
server_close_reader (Server *self, guint64 id, const gchar *reason)
{
  GList *clients = dup_clients (self);
  gboolean found = FALSE;

  for (GList *l = clients; l && !found; l = l->next) {
    Reader *reader = client_dup_reader (l->data);

    found = reader && reader_get_id (reader) == id;
    if (found)
      client_close (l->data, NULL, reason);
    g_clear_pointer (&reader, reader_unref);
  }
  g_list_free_full (clients, g_object_unref);
  return found;
}

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

// ---- life ----

static GstRTSPFilterResult
cleanup_client (GstRTSPServer *server, GstRTSPClient *client, gpointer unused)
{
  client_cleanup_sessions (client);
  return GST_RTSP_FILTER_KEEP;
}

static gboolean
is_served (const gchar *path, gpointer data)
{
  Mount *mount = server_get_mount (data, path);
  gboolean served = mount != NULL;

  g_clear_pointer (&mount, mount_unref);
  return served;
}

static gboolean
cleanup_sessions (gpointer data)
{
  GstRTSPServer *listener = GST_RTSP_SERVER (((Server *) data)->listener);

  g_list_free_full (gst_rtsp_server_client_filter (listener, cleanup_client, NULL), g_object_unref);
  totals_collect (is_served, data);
  return G_SOURCE_CONTINUE;
}

static Mount *
add_mount (Server *self, MountConfig *config, GError **error)
{
  Mount *mount = mount_new (&self->context, config, error);

  if (!mount)
    return NULL;
  g_mutex_lock (&self->lock);
  g_hash_table_insert (self->mounts, g_strdup (config->path), mount);
  g_mutex_unlock (&self->lock);
  return mount;
}

// A reader that was given another priority than the mount had keeps it.
static void
pass_on_priority (Server *self, const gchar *path, guint from, guint to)
{
  GPtrArray *readers = from != to ? server_dup_readers (self) : NULL;

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
change_mount (Server *self, Mount *mount, MountConfig *config, GError **error)
{
  guint priority = mount_get_config (mount)->priority;

  if (!mount_configure (mount, config, error))
    return FALSE;
  pass_on_priority (self, config->path, priority, config->priority);
  log_event ("mount %s changed", config->path);
  return TRUE;
}

gboolean
server_put_mount (Server *self, MountConfig *config, GError **error)
{
  Mount *mount = g_hash_table_lookup (self->mounts, config->path);

  if (mount)
    return change_mount (self, mount, config, error);
  mount = add_mount (self, config, error);
  if (!mount)
    return FALSE;
  log_event ("mount %s added", config->path);
  mount_start (mount);
  return TRUE;
}

gboolean
server_remove_mount (Server *self, const gchar *path, const gchar *reason)
{
  Mount *mount = server_get_mount (self, path);
  GPtrArray *presentations;

  if (!mount)
    return FALSE;
  g_mutex_lock (&self->lock);
  g_hash_table_remove (self->mounts, path);
  g_mutex_unlock (&self->lock);
  log_event ("mount %s removed: %s", path, reason);
  presentations = mount_dup_presentations (mount);
  // Stopped first: who has found it already, and is not yet known to use it, finds it down.
  mount_stop (mount);
  for (guint i = 0; i < presentations->len; i++)
    close_readers (g_ptr_array_index (presentations, i), reason, self);
  g_ptr_array_unref (presentations);
  mount_unref (mount);
  return TRUE;
}

static gint
compare_paths (gconstpointer a, gconstpointer b)
{
  return strcmp (mount_get_path (*(Mount **) a), mount_get_path (*(Mount **) b));
}

GPtrArray *
server_dup_mounts (Server *self)
{
  GPtrArray *mounts = g_ptr_array_new_with_free_func ((GDestroyNotify) mount_unref);
  GHashTableIter iter;
  gpointer mount;

  g_hash_table_iter_init (&iter, self->mounts);
  while (g_hash_table_iter_next (&iter, NULL, &mount))
    g_ptr_array_add (mounts, mount_ref (mount));
  g_ptr_array_sort (mounts, compare_paths);
  return mounts;
}

Server *
server_new (ProxyConfig *config, GError **error)
{
  Server *self = g_new0 (Server, 1);
  GstRTSPServer *listener;
  GstRTSPThreadPool *threads;
  GHashTableIter iter;
  gpointer mount;
  gchar *port = g_strdup_printf ("%u", config->port);

  self->listener = g_object_new (listener_get_type (), NULL);
  self->listener->server = self;
  listener = GST_RTSP_SERVER (self->listener);
  g_mutex_init (&self->lock);
  self->mounts =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify) mount_unref);
  gst_rtsp_server_set_address (listener, config->address);
  gst_rtsp_server_set_service (listener, port);
  gst_rtsp_server_set_backlog (listener, BACKLOG);
  g_free (port);

  // Few threads do for all connections: no request waits for anything in one.
  threads = gst_rtsp_server_get_thread_pool (listener);
  gst_rtsp_thread_pool_set_max_threads (threads, (gint) MAX (g_get_num_processors (), 4));
  g_object_unref (threads);

  self->graph = graph_new ();
  self->stages = stage_set_ref (config->set);
  self->context =
      (MountContext) { self->graph, g_object_new (points_get_type (), NULL), &outlet, self };
  gst_rtsp_server_set_mount_points (listener, self->context.points);
  for (guint i = 0; i < config->mounts->len; i++) {
    if (!add_mount (self, g_ptr_array_index (config->mounts, i), error)) {
      server_free (self);
      return NULL;
    }
  }

  self->address = g_strdup (config->address);
  if (weir_serve (listener, error)) {
    self->socket = gst_rtsp_server_create_socket (listener, NULL, error);
    if (!self->socket)
      g_prefix_error (error, "can't listen on %s port %u: ", config->address, config->port);
  }
  if (!self->socket) {
    server_free (self);
    return NULL;
  }
  self->accept = g_socket_create_source (self->socket, G_IO_IN | G_IO_ERR | G_IO_HUP, NULL);
  g_source_set_callback (
      self->accept, (GSourceFunc) (void (*) (void)) gst_rtsp_server_io_func, listener, NULL);
  g_source_attach (self->accept, NULL);
  self->cleanup = g_timeout_add_seconds (CLEANUP_INTERVAL_S, cleanup_sessions, self);
  self->adaptation = g_timeout_add (ADAPTATION_INTERVAL_MS, adaptation_run, NULL);

  g_hash_table_iter_init (&iter, self->mounts);
  while (g_hash_table_iter_next (&iter, NULL, &mount))
    mount_start (mount);
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

gchar *
server_check_mount (Server *self, MountConfig *config)
{
  GPtrArray *configs = g_ptr_array_new ();
  GHashTableIter iter;
  gpointer path, mount;
  gchar *loop, *wrong = NULL;

  g_hash_table_iter_init (&iter, self->mounts);
  while (g_hash_table_iter_next (&iter, &path, &mount)) {
    if (!g_str_equal (path, config->path))
      g_ptr_array_add (configs, (gpointer) mount_get_config (mount));
  }
  g_ptr_array_add (configs, config);
  loop = mount_loop_find (configs, config, self->address, get_port (self));
  if (loop)
    wrong = g_strdup_printf ("%s: it would take its media from itself: %s", config->path, loop);
  g_free (loop);
  g_ptr_array_unref (configs);
  return wrong;
}

gchar *
server_dup_base_url (Server *self)
{
  const gchar *form = strchr (self->address, ':') ? "rtsp://[%s]:%u" : "rtsp://%s:%u";
  GString *url = g_string_new (NULL);

  g_string_printf (url, form, self->address, get_port (self));
  return g_string_free (url, FALSE);
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
  GHashTableIter iter;
  gpointer mount;

  g_source_destroy (self->accept);
  g_socket_close (self->socket, NULL);
  g_list_free_full (gst_rtsp_server_client_filter (GST_RTSP_SERVER (self->listener), close_any,
                        (gpointer) "the proxy is going down"),
      g_object_unref);
  g_hash_table_iter_init (&iter, self->mounts);
  while (g_hash_table_iter_next (&iter, NULL, &mount))
    mount_stop (mount);

  waker = g_timeout_add (20, wake, NULL);
  while (!(closed = n_clients (self) == 0 && upstream_n_closing () == 0)
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
  if (self->adaptation)
    g_source_remove (self->adaptation);
  g_clear_pointer (&self->accept, g_source_unref);
  g_clear_object (&self->socket);
  g_clear_object (&self->listener);
  g_hash_table_unref (self->mounts);
  while (g_main_context_iteration (NULL, FALSE)) // mounts are freed from there
    ;
  g_clear_object (&self->context.points);
  g_clear_pointer (&self->graph, graph_free);
  g_clear_pointer (&self->stages, stage_set_unref);
  totals_clear ();
  g_mutex_clear (&self->lock);
  g_free (self->address);
  g_free (self);
}
