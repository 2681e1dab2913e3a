// SPDX-License-Identifier: LGPL-2.1-or-later
#include "proxy/proxy.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/main_loop.h"
#include "config/mount_inputs.h"
#include "config/mounts_check.h"
#include "graph/graph.h"
#include "mounts/offer.h"
#include "readers/adaptation.h"
#include "readers/memory_pressure.h"
#include "readers/totals.h"
#include "sources/upstream.h"

#define TOTALS_INTERVAL_S 2
#define MEMORY_INTERVAL_S 1
#define INSTANCES_INTERVAL_S 1

typedef struct {
  CloseReadersFunc close;
  gpointer data;
} Closer;

struct _Proxy {
  Graph *graph;
  StageSet *stages;
  MountContext context;
  Mounts *mounts;
  Access *access;
  TlsKeys *keys; // NULL: no TLS
  TlsFront *tls;
  GArray *closers; // of Closer
  GArray *listen;  // of ListenAddress
  GPtrArray *urls; // of `listen`
  guint totals, adaptation, memory, instances;
};

// ---- parts ----

Mounts *
proxy_get_mounts (Proxy *self)
{
  return self->mounts;
}

Access *
proxy_get_access (Proxy *self)
{
  return self->access;
}

Graph *
proxy_get_graph (Proxy *self)
{
  return self->graph;
}

TlsFront *
proxy_get_tls (Proxy *self)
{
  return self->tls;
}

StageSet *
proxy_get_stages (Proxy *self)
{
  return self->stages;
}

void
proxy_set_stages (Proxy *self, StageSet *stages)
{
  stage_set_ref (stages);
  stage_set_unref (self->stages);
  self->stages = stages;
}

void
proxy_reload_tls (Proxy *self)
{
  if (self->keys)
    tls_keys_reload (self->keys);
}

// ---- readers of all outlets ----

void
proxy_add_closer (Proxy *self, CloseReadersFunc close, gpointer data)
{
  Closer closer = { close, data };

  g_array_append_val (self->closers, closer);
}

static void
close_readers (Presentation *presentation, const gchar *reason, gpointer data)
{
  const GArray *closers = ((Proxy *) data)->closers;

  for (guint i = 0; i < closers->len; i++) {
    const Closer *closer = &g_array_index (closers, Closer, i);

    closer->close (presentation, reason, closer->data);
  }
}

void
proxy_close_readers (Proxy *self, Presentation *presentation, const gchar *reason)
{
  close_readers (presentation, reason, self);
}

// ---- changes of mounts ----

// Gives readers the mount's new priority, except readers whose own priority was changed.
static void
update_readers_priority (const gchar *path, guint from, guint to)
{
  g_autoptr (GPtrArray) readers = from != to ? readers_dup_all () : NULL;

  for (guint i = 0; readers && i < readers->len; i++) {
    Reader *reader = g_ptr_array_index (readers, i);
    ReaderSample sample;

    if (!g_str_equal (reader_get_mount (reader), path))
      continue;
    reader_sample (reader, &sample);
    if (sample.priority == from)
      reader_set_priority (reader, to);
  }
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
proxy_put_mount (Proxy *self, MountConfig *config, GError **error)
{
  Mount *mount = mounts_get (self->mounts, config->path);
  gboolean done;

  if (mount && mount_lacks (mount) && !config->lack) { // nothing of it could be kept
    g_clear_pointer (&mount, mount_unref);
    proxy_remove_mount (self, config->path, "it lacks nothing any more, and is made anew");
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
proxy_remove_mount (Proxy *self, const gchar *path, const gchar *reason)
{
  g_autoptr (Mount) mount = mounts_get (self->mounts, path);
  g_autoptr (GPtrArray) presentations = NULL;

  if (!mount)
    return FALSE;
  mounts_remove (self->mounts, path);
  log_event ("mount %s removed: %s", path, reason);
  presentations = mount_dup_presentations (mount);
  // Stop the mount first, so that a client that has found it but does not use it yet is refused.
  mount_stop (mount);
  for (guint i = 0; i < presentations->len; i++)
    proxy_close_readers (self, g_ptr_array_index (presentations, i), reason);
  return TRUE;
}

// ---- mounts that paths with variables make ----

static void
end_instance (Proxy *self, const gchar *path, const gchar *reason)
{
  g_autoptr (Mount) mount = mounts_end_instance (self->mounts, path);
  g_autoptr (Presentation) main = mount ? mount_dup_main (mount) : NULL;

  if (!mount)
    return;
  log_event ("mount %s removed: %s", path, reason);
  proxy_close_readers (self, main, reason);
}

static gboolean
end_unused (gpointer data)
{
  Proxy *self = data;
  g_autoptr (GPtrArray) unused = mounts_dup_unused (self->mounts, clock_now ());

  for (guint i = 0; i < unused->len; i++)
    end_instance (self, g_ptr_array_index (unused, i), "nobody uses it");
  return G_SOURCE_CONTINUE;
}

static void
change_instance (Proxy *self, Mount *mount)
{
  const gchar *path = mount_get_path (mount);
  g_autoptr (MountConfig) config = mounts_dup_instance_config (self->mounts, path);
  g_autoptr (GError) error = NULL;

  if (!config)
    end_instance (self, path, "the mount is no longer in the configuration");
  else if (!mount_config_equal (mount_get_config (mount), config)
           && !change_mount (mount, config, &error))
    log_event ("mount %s was not changed: %s", path, error->message);
}

void
proxy_set_patterns (Proxy *self, GPtrArray *patterns)
{
  g_autoptr (GPtrArray) mounts = mounts_dup_all (self->mounts);

  mounts_set_patterns (self->mounts, patterns);
  for (guint i = 0; i < mounts->len; i++) {
    if (mount_get_config (g_ptr_array_index (mounts, i))->pattern)
      change_instance (self, g_ptr_array_index (mounts, i));
  }
}

// Returns the configurations of all mounts but `path`.
static GPtrArray *
dup_others (Proxy *self, const gchar *path)
{
  g_autoptr (GPtrArray) mounts = mounts_dup_all (self->mounts);
  GPtrArray *configs = g_ptr_array_new_with_free_func ((GDestroyNotify) mount_config_unref);

  for (guint i = 0; i < mounts->len; i++) {
    Mount *mount = g_ptr_array_index (mounts, i);

    if (!g_str_equal (mount_get_path (mount), path))
      g_ptr_array_add (configs, mount_dup_config (mount));
  }
  return configs;
}

gchar *
proxy_dup_input_user (Proxy *self, const gchar *path)
{
  g_autoptr (GPtrArray) configs = dup_others (self, path);

  return g_strdup (mount_inputs_find_user (configs, path));
}

gchar *
proxy_check_mount (Proxy *self, MountConfig *config)
{
  g_autoptr (GPtrArray) configs = dup_others (self, config->path);
  gchar *wrong, *text;

  g_ptr_array_add (configs, mount_config_ref (config));
  wrong = mounts_check (configs, config, (const ListenAddress *) self->listen->data);
  text = wrong ? g_strdup_printf ("%s: %s", config->path, wrong) : NULL;
  g_free (wrong);
  return text;
}

// ---- start and end ----

static void
clear_listen (gpointer listen)
{
  g_free (((ListenAddress *) listen)->address);
}

static gboolean
start_tls (Proxy *self, const TlsConfig *config, GError **error)
{
  if (!config->pair)
    return TRUE;
  self->keys = tls_keys_new (config->certificate, config->key, tls_pair_ref (config->pair));
  self->tls = tls_front_new (self->keys, error);
  return self->tls != NULL;
}

Proxy *
proxy_new (const ProxyConfig *config, GError **error)
{
  Proxy *self = g_new0 (Proxy, 1);

  limits_set (&config->limits);
  offer_configure (config);
  self->graph = graph_new ();
  self->context.graph = self->graph;
  self->context.close_readers = close_readers;
  self->context.close_data = self;
  self->context.keeps_groups = config->webrtc.listen.address != NULL;
  self->closers = g_array_new (FALSE, FALSE, sizeof (Closer));
  self->mounts = mounts_new (&self->context);
  self->access = access_new (config);
  self->stages = stage_set_ref (config->stage_set);
  // An entry without an address ends it.
  self->listen = g_array_new (TRUE, TRUE, sizeof (ListenAddress));
  g_array_set_clear_func (self->listen, clear_listen);
  self->urls = g_ptr_array_new_with_free_func (g_free);
  if (!start_tls (self, &config->tls, error))
    g_clear_pointer (&self, proxy_free);
  return self;
}

void
proxy_present (Proxy *self, const MountOutlet *outlet, gpointer data,
    const TitleOutlet *title_outlet, GObject *title_data)
{
  self->context.outlet = outlet;
  self->context.data = data;
  self->context.title_outlet = title_outlet;
  self->context.title_data = g_object_ref (title_data);
}

void
proxy_add_listen (Proxy *self, const gchar *scheme, const ListenAddress *listen)
{
  ListenAddress own = { g_strdup (listen->address), listen->port };

  g_array_append_val (self->listen, own);
  g_ptr_array_add (self->urls, listen_address_dup_url (listen, scheme));
}

GStrv
proxy_dup_base_urls (Proxy *self)
{
  GStrv urls = g_new0 (gchar *, self->urls->len + 1);

  for (guint i = 0; i < self->urls->len; i++)
    urls[i] = g_strdup (g_ptr_array_index (self->urls, i));
  return urls;
}

gboolean
proxy_add_mounts (Proxy *self, const ProxyConfig *config, GError **error)
{
  for (guint i = 0; i < config->mounts->len; i++) {
    if (!mounts_add (self->mounts, g_ptr_array_index (config->mounts, i), error))
      return FALSE;
  }
  mounts_set_patterns (self->mounts, config->patterns);
  return TRUE;
}

static gboolean
is_served (const gchar *path, gpointer mounts)
{
  g_autoptr (Mount) mount = mounts_get (mounts, path);

  return mount != NULL;
}

static gboolean
collect_totals (gpointer mounts)
{
  totals_collect (is_served, mounts);
  return G_SOURCE_CONTINUE;
}

static gboolean
watch_memory (gpointer unused)
{
  memory_pressure_check ();
  return G_SOURCE_CONTINUE;
}

void
proxy_start (Proxy *self)
{
  g_autoptr (GPtrArray) mounts = mounts_dup_all (self->mounts);

  self->totals = g_timeout_add_seconds (TOTALS_INTERVAL_S, collect_totals, self->mounts);
  watch_memory (NULL);
  self->memory = g_timeout_add_seconds (MEMORY_INTERVAL_S, watch_memory, NULL);
  self->instances = g_timeout_add_seconds (INSTANCES_INTERVAL_S, end_unused, self);
  self->adaptation = g_timeout_add (ADAPTATION_INTERVAL_MS, adaptation_run, NULL);
  for (guint i = 0; i < mounts->len; i++)
    mount_start (g_ptr_array_index (mounts, i));
}

static void
stop_mounts (Proxy *self)
{
  g_autoptr (GPtrArray) mounts = mounts_dup_all (self->mounts);

  for (guint i = 0; i < mounts->len; i++)
    mount_stop (g_ptr_array_index (mounts, i));
}

static gboolean
is_closed (gpointer data)
{
  Proxy *self = data;

  return upstream_n_closing () == 0 && (!self->tls || tls_front_n_open (self->tls) == 0);
}

gboolean
proxy_stop (Proxy *self, guint timeout_ms)
{
  stop_mounts (self);
  return main_loop_wait (is_closed, self, timeout_ms);
}

static void
remove_source (guint *source)
{
  if (*source)
    g_source_remove (*source);
  *source = 0;
}

void
proxy_free (Proxy *self)
{
  remove_source (&self->totals);
  remove_source (&self->memory);
  remove_source (&self->instances);
  remove_source (&self->adaptation);
  g_clear_pointer (&self->tls, tls_front_free);
  g_clear_pointer (&self->keys, tls_keys_free);
  g_clear_pointer (&self->mounts, mounts_free);
  main_loop_drain (); // frees the mounts
  g_clear_object (&self->context.title_data);
  g_clear_pointer (&self->graph, graph_free);
  g_clear_pointer (&self->stages, stage_set_unref);
  g_clear_pointer (&self->access, access_free);
  g_array_unref (self->closers);
  g_array_unref (self->listen);
  g_ptr_array_unref (self->urls);
  totals_clear ();
  g_free (self);
}
