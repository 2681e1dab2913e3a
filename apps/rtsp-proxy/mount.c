// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mount.h"

#include "log.h"
#include "upstream.h"

#define FREE_INTERVAL_MS 100

struct _Mount {
  gatomicrefcount refs;
  MountConfig *config; // atomic
  GPtrArray *configs;  // those it had before: other threads may still read them
  gchar *shown_uri;    // without credentials
  Relay *relay;
  RelaySource *source;
  Upstream *upstream; // main thread only
  gboolean started;   // main thread only
  guint linger;       // main thread only
  MountCloseReadersFunc close_readers;
  gpointer close_readers_data;

  GMutex lock;    // all below
  GList *waiting; // of Waiter
  guint n_users;
  gboolean known;       // media has flowed, so the tracks are real
  gint64 failing_until; // ns: the last attempt failed and the next comes then; 0 while one runs
  gboolean stopped;
  guint media_generation;
  GstRTSPMedia *media; // the one that is kept prepared
};

static const MountConfig *
get_config (Mount *self)
{
  return g_atomic_pointer_get (&self->config);
}

static const PullConfig *
get_pull (const MountConfig *config)
{
  return g_ptr_array_index (config->pulls, 0);
}

// ---- who waits ----

typedef struct {
  Mount *mount;
  MountToldFunc told;
  gpointer data;
  GSource *deadline; // on the main thread
} Waiter;

static void
tell (gpointer data)
{
  Waiter *waiter = data;

  g_source_destroy (waiter->deadline);
  g_source_unref (waiter->deadline);
  waiter->told (waiter->data);
  g_free (waiter);
}

static void
tell_all (Mount *self)
{
  GList *waiting;

  g_mutex_lock (&self->lock);
  waiting = g_steal_pointer (&self->waiting);
  g_mutex_unlock (&self->lock);
  g_list_free_full (waiting, tell);
}

static gboolean
deadline_over (gpointer data)
{
  Waiter *waiter = data;
  Mount *self = waiter->mount;
  GList *link;

  g_mutex_lock (&self->lock);
  link = g_list_find (self->waiting, waiter);
  if (link)
    self->waiting = g_list_delete_link (self->waiting, link);
  g_mutex_unlock (&self->lock);
  if (link)
    tell (waiter);
  return G_SOURCE_REMOVE;
}

// With the lock held.
static MountState
get_state (Mount *self)
{
  if (self->stopped)
    return MOUNT_DOWN;
  if (self->known)
    return MOUNT_KNOWN;
  return pull_now () < self->failing_until ? MOUNT_DOWN : MOUNT_STARTING;
}

MountState
mount_ask (Mount *self)
{
  MountState state;

  g_mutex_lock (&self->lock);
  state = get_state (self);
  g_mutex_unlock (&self->lock);
  return state;
}

void
mount_wait (Mount *self, MountToldFunc told, gpointer data)
{
  Waiter *waiter = g_new (Waiter, 1);
  gboolean waits;

  *waiter =
      (Waiter) { self, told, data, g_timeout_source_new (get_config (self)->start_timeout_ms) };
  g_source_set_callback (waiter->deadline, deadline_over, waiter, NULL);
  g_mutex_lock (&self->lock);
  waits = get_state (self) == MOUNT_STARTING;
  if (waits) {
    self->waiting = g_list_prepend (self->waiting, waiter);
    g_source_attach (waiter->deadline, NULL);
  }
  g_mutex_unlock (&self->lock);
  if (!waits)
    tell (waiter);
}

// ---- media ----

gchar *
mount_dup_media_key (Mount *self)
{
  gchar *key;

  g_mutex_lock (&self->lock);
  key = g_strdup_printf ("%s#%u", get_config (self)->path, self->media_generation);
  g_mutex_unlock (&self->lock);
  return key;
}

void
mount_keep_media (Mount *self, GstRTSPMedia *media)
{
  gboolean keep;

  g_mutex_lock (&self->lock);
  keep = !self->media && !self->stopped;
  if (keep)
    self->media = g_object_ref (media);
  g_mutex_unlock (&self->lock);
  // Prepared as it is, this counts one more user of it.
  if (keep)
    gst_rtsp_media_prepare (media, NULL);
}

static void
retire_media (Mount *self)
{
  GstRTSPMedia *media;

  g_mutex_lock (&self->lock);
  media = g_steal_pointer (&self->media);
  self->media_generation++;
  g_mutex_unlock (&self->lock);
  if (media) {
    gst_rtsp_media_unprepare (media);
    g_object_unref (media);
  }
}

// ---- upstream ----

static void
on_connecting (gpointer owner)
{
  Mount *self = owner;

  g_mutex_lock (&self->lock);
  self->failing_until = 0;
  g_mutex_unlock (&self->lock);
}

static void
on_up (gpointer owner)
{
  Mount *self = owner;

  log_event ("mount %s up: %s, %u tracks", get_config (self)->path, self->shown_uri,
      relay_n_tracks (self->relay));
  g_mutex_lock (&self->lock);
  self->known = TRUE;
  g_mutex_unlock (&self->lock);
  tell_all (self);
}

static void
on_changed (gpointer owner)
{
  Mount *self = owner;

  retire_media (self);
  self->close_readers (self, "the upstream came back with other tracks", self->close_readers_data);
}

static void
on_down (gpointer owner, const gchar *reason, guint retry_ms)
{
  Mount *self = owner;

  log_event ("mount %s down: %s: %s; next try in %.1f s", get_config (self)->path, self->shown_uri,
      reason, retry_ms / 1000.0);
  g_mutex_lock (&self->lock);
  self->failing_until = pull_now () + (gint64) retry_ms * GST_MSECOND;
  g_mutex_unlock (&self->lock);
  tell_all (self);
}

static const UpstreamCallbacks upstream_callbacks = { on_connecting, on_up, on_changed, on_down };

// ---- users ----

static gboolean
linger_over (gpointer data)
{
  Mount *self = data;
  gboolean idle;

  self->linger = 0;
  g_mutex_lock (&self->lock);
  idle = self->n_users == 0;
  g_mutex_unlock (&self->lock);
  if (idle) {
    log_event ("mount %s down: no readers for %.1f s", get_config (self)->path,
        get_config (self)->linger_ms / 1000.0);
    self->started = FALSE;
    upstream_stop (self->upstream);
    retire_media (self);
  }
  return G_SOURCE_REMOVE;
}

// On the main thread after the number of users went to or from none.
static gboolean
update (gpointer data)
{
  Mount *self = data;
  gboolean wanted, stopped;

  g_mutex_lock (&self->lock);
  stopped = self->stopped;
  wanted = self->n_users > 0 || !get_config (self)->on_demand;
  g_mutex_unlock (&self->lock);

  g_clear_handle_id (&self->linger, g_source_remove);
  if (stopped)
    return G_SOURCE_REMOVE;
  if (wanted) {
    self->started = TRUE;
    upstream_start (self->upstream);
  } else if (self->started)
    self->linger = g_timeout_add (get_config (self)->linger_ms, linger_over, self);
  return G_SOURCE_REMOVE;
}

void
mount_use (Mount *self)
{
  gboolean first;

  g_mutex_lock (&self->lock);
  first = self->n_users++ == 0;
  g_mutex_unlock (&self->lock);
  if (first)
    g_idle_add_full (G_PRIORITY_DEFAULT, update, self, NULL);
}

void
mount_unuse (Mount *self)
{
  gboolean last;

  g_mutex_lock (&self->lock);
  last = --self->n_users == 0;
  g_mutex_unlock (&self->lock);
  if (last)
    g_idle_add_full (G_PRIORITY_DEFAULT, update, self, NULL);
}

// ---- outside ----

const gchar *
mount_get_path (Mount *self)
{
  return get_config (self)->path;
}

const MountConfig *
mount_get_config (Mount *self)
{
  return get_config (self);
}

Relay *
mount_get_relay (Mount *self)
{
  return self->relay;
}

void
mount_configure (Mount *self, MountConfig *config)
{
  MountConfig *old = self->config;
  gboolean reconnects = mount_config_needs_upstream (old, config);

  g_ptr_array_add (self->configs, old);
  g_atomic_pointer_set (&self->config, config);
  if (reconnects) {
    upstream_free (self->upstream);
    self->upstream =
        upstream_new (get_pull (config), pull_new, self->source, &upstream_callbacks, self);
    g_free (self->shown_uri);
    self->shown_uri = log_redact (get_pull (config)->uri);
    g_mutex_lock (&self->lock);
    self->failing_until = 0;
    g_mutex_unlock (&self->lock);
  }
  if (self->started || !config->on_demand)
    update (self);
}

void
mount_start (Mount *self)
{
  update (self);
}

void
mount_stop (Mount *self)
{
  g_mutex_lock (&self->lock);
  self->stopped = TRUE;
  g_mutex_unlock (&self->lock);
  tell_all (self);
  g_clear_handle_id (&self->linger, g_source_remove);
  upstream_stop (self->upstream);
  retire_media (self);
}

Mount *
mount_new (MountConfig *config, MountCloseReadersFunc close_readers, gpointer data)
{
  Mount *self = g_new0 (Mount, 1);

  g_atomic_ref_count_init (&self->refs);
  self->config = config;
  self->configs = g_ptr_array_new_with_free_func ((GDestroyNotify) mount_config_unref);
  self->shown_uri = log_redact (get_pull (config)->uri);
  self->relay = relay_new (TRUE);
  self->source = relay_source_new (self->relay, NULL, NULL);
  self->upstream =
      upstream_new (get_pull (config), pull_new, self->source, &upstream_callbacks, self);
  self->close_readers = close_readers;
  self->close_readers_data = data;
  g_mutex_init (&self->lock);
  return self;
}

static void
mount_free (Mount *self)
{
  mount_stop (self);
  while (g_idle_remove_by_data (self))
    ;
  upstream_free (self->upstream);
  relay_source_unref (self->source);
  relay_unref (self->relay);
  g_mutex_clear (&self->lock);
  g_free (self->shown_uri);
  mount_config_unref (self->config);
  g_ptr_array_unref (self->configs);
  g_free (self);
}

Mount *
mount_ref (Mount *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

// A pipeline that is being taken down may still read the configuration.
static gboolean
free_mount (gpointer mount)
{
  if (upstream_n_closing () > 0)
    g_timeout_add (FREE_INTERVAL_MS, free_mount, mount);
  else
    mount_free (mount);
  return G_SOURCE_REMOVE;
}

void
mount_unref (Mount *self)
{
  if (g_atomic_ref_count_dec (&self->refs))
    g_idle_add_full (G_PRIORITY_DEFAULT, free_mount, self, NULL);
}
