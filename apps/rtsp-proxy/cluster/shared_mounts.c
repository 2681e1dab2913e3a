// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cluster/shared_mounts.h"

#include "base/clock.h"
#include "base/log.h"
#include "cluster/etcd_requests.h"
#include "config/mount_read.h"
#include "text/json_strict.h"

#include <string.h>

#define MOUNTS_MAX 10000
#define DEPTH_MAX 16
#define RETRY_NS (G_GINT64_CONSTANT (1000000000) * 5)
#define GONE "the cluster has no such mount any more"

struct _SharedMounts {
  Etcd *etcd;
  ClusterMap *map;
  Proxy *proxy;
  GHashTable *mounts; // path -> SharedMount
  // A key in etcd with a random value: with another one, etcd was replaced, and does not know that
  // its mounts are gone. NULL: not known yet.
  gchar *era;
  gboolean lacks_era; // etcd does
  gboolean asking;    // an answer about the era is awaited
  gchar *writing;     // the path of a mount that etcd has lost, and whose answer is awaited
  gboolean serving;   // shared_mounts_start() was called
  gint64 retry_at;    // ns
  LogLimit strange;
};

typedef struct {
  gchar *path;
  gchar *value;        // NULL: it is not text
  gboolean is_deleted; // and the watch has not said so yet
  gboolean is_lost;    // etcd was replaced, and the watch does not say yet that it has it again
  gboolean is_written; // since then
  gint64 revision;
  MountConfig *config;  // what the value says; NULL: not read, or it is wrong
  MountConfig *applied; // what the proxy got last; NULL: nothing
  gchar *problem;
  LogLimit problems;
} SharedMount;

// ---- the table ----

static void
mount_free (gpointer data)
{
  SharedMount *self = data;

  g_clear_pointer (&self->config, mount_config_unref);
  g_clear_pointer (&self->applied, mount_config_unref);
  g_free (self->problem);
  g_free (self->value);
  g_free (self->path);
  g_free (self);
}

// Returns NULL if there are too many.
static SharedMount *
get_mount (SharedMounts *self, const gchar *path)
{
  SharedMount *mount = g_hash_table_lookup (self->mounts, path);

  if (mount || g_hash_table_size (self->mounts) >= MOUNTS_MAX)
    return mount;
  mount = g_new0 (SharedMount, 1);
  mount->path = g_strdup (path);
  mount->problems = LOG_LIMIT_FAILURES;
  g_hash_table_insert (self->mounts, mount->path, mount);
  return mount;
}

// ---- serving ----

static void
set_problem (SharedMount *mount, const gchar *problem)
{
  if (problem && g_strcmp0 (problem, mount->problem) != 0)
    log_event_limited (&mount->problems, "cluster: the mount %s in etcd is wrong, and %s: %s",
        mount->path, mount->applied ? "stays as it was" : "is not served", problem);
  g_free (mount->problem);
  mount->problem = g_strdup (problem);
}

// Returns NULL and sets `error` if the value is wrong.
static MountConfig *
read_value (SharedMounts *self, const SharedMount *mount, GError **error)
{
  const gsize len = mount->value ? strlen (mount->value) : 0;
  g_autoptr (JsonObject) object = len > 0 && len <= SHARED_MOUNT_SIZE_MAX
                                      ? json_strict_read (mount->value, len, DEPTH_MAX)
                                      : NULL;
  YamlReader *reader = object ? yaml_reader_new ("etcd", mount->value, len, error) : NULL;
  MountConfig *config;

  if (!object)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
        "the value is not a JSON object of at most %d bytes", SHARED_MOUNT_SIZE_MAX);
  if (!reader)
    return NULL;
  config = mount_read_body (proxy_get_stages (self->proxy), mount->path, reader, NULL, error);
  yaml_reader_free (reader);
  return config;
}

// Reports whether the mount of the proxy is one of its file, which wins.
static gboolean
is_of_file (const MountConfig *config)
{
  return !config->from_api && !config->pattern;
}

// Gives the proxy what the mount says. Returns FALSE and sets `error` if the mount is wrong.
static gboolean
apply (SharedMounts *self, SharedMount *mount, GError **error)
{
  g_autofree gchar *wrong = NULL;

  if (!mount->config)
    mount->config = read_value (self, mount, error);
  if (!mount->config)
    return FALSE;
  wrong = proxy_check_mount (self->proxy, mount->config);
  if (wrong) {
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, wrong);
    return FALSE;
  }
  if (!proxy_put_mount (self->proxy, mount->config, error))
    return FALSE;
  g_clear_pointer (&mount->applied, mount_config_unref);
  mount->applied = mount_config_ref (mount->config);
  return TRUE;
}

// Returns whether the proxy has got something.
static gboolean
look_at (SharedMounts *self, SharedMount *mount, gboolean retries)
{
  g_autoptr (Mount) here = mounts_get (proxy_get_mounts (self->proxy), mount->path);
  const MountConfig *has = here ? mount_get_config (here) : NULL;
  g_autoptr (GError) error = NULL;

  if (mount->is_deleted || (has && (is_of_file (has) || has == mount->config)))
    return FALSE;
  if (mount->problem && !mount->config && !retries)
    return FALSE;
  if (apply (self, mount, &error)) {
    set_problem (mount, NULL);
    return TRUE;
  }
  set_problem (mount, error->message);
  return FALSE;
}

static void
look_at_all (SharedMounts *self, gboolean retries)
{
  gboolean changes = self->serving;

  // One may be an input of another one.
  while (changes) {
    GHashTableIter iter;
    gpointer mount;

    changes = FALSE;
    g_hash_table_iter_init (&iter, self->mounts);
    while (g_hash_table_iter_next (&iter, NULL, &mount))
      changes |= look_at (self, mount, retries);
    retries = FALSE;
  }
}

static void
stop_serving (SharedMounts *self, SharedMount *mount)
{
  g_autoptr (Mount) here = mounts_get (proxy_get_mounts (self->proxy), mount->path);

  if (here && mount->applied && mount_get_config (here) == mount->applied)
    proxy_remove_mount (self->proxy, mount->path, GONE);
  g_clear_pointer (&mount->applied, mount_config_unref);
}

// ---- what etcd says ----

static void
take_value (SharedMounts *self, const gchar *path, const gchar *value, gint64 revision)
{
  g_autofree gchar *wrong = mount_check_path (path);
  SharedMount *mount = wrong ? NULL : get_mount (self, path);

  if (!mount) {
    log_event_limited (&self->strange, "cluster: a mount in etcd is not served: %s",
        wrong ? wrong : "there are more than " G_STRINGIFY (MOUNTS_MAX));
    return;
  }
  if (mount->is_deleted || g_strcmp0 (mount->value, value) != 0) {
    g_free (mount->value);
    mount->value = g_strdup (value);
    g_clear_pointer (&mount->config, mount_config_unref);
    g_clear_pointer (&mount->problem, g_free);
  }
  mount->is_deleted = mount->is_lost = mount->is_written = FALSE;
  mount->revision = revision;
}

static const gchar *
get_path (SharedMounts *self, const EtcdEntry *entry)
{
  const gchar *prefix = cluster_map_get_mounts_key (self->map);

  return g_str_has_prefix (entry->key, prefix) && entry->key[strlen (prefix)] == '/'
             ? entry->key + strlen (prefix)
             : NULL;
}

static gboolean
is_era (SharedMounts *self, const EtcdEntry *entry)
{
  return g_str_equal (entry->key, cluster_map_get_era_key (self->map));
}

static void
set_era (SharedMounts *self, const gchar *era)
{
  g_free (self->era);
  self->era = g_strdup (era);
  self->lacks_era = FALSE;
}

void
shared_mounts_put (SharedMounts *self, const EtcdEntry *entry)
{
  const gchar *path = get_path (self, entry);
  const SharedMount *mount = path ? g_hash_table_lookup (self->mounts, path) : NULL;

  if (is_era (self, entry))
    set_era (self, entry->value);
  if (!path || (mount && mount->revision >= entry->revision))
    return; // an answer has said this before
  take_value (self, path, entry->value, entry->revision);
  look_at_all (self, FALSE);
}

void
shared_mounts_deleted (SharedMounts *self, const EtcdEntry *entry)
{
  const gchar *path = get_path (self, entry);
  SharedMount *mount = path ? g_hash_table_lookup (self->mounts, path) : NULL;

  if (!mount || mount->revision > entry->revision)
    return;
  stop_serving (self, mount);
  g_hash_table_remove (self->mounts, path);
}

// Forgets the mounts that are not among `paths`, or notes that etcd has lost them.
static void
miss (SharedMounts *self, GHashTable *paths, gboolean was_replaced)
{
  GHashTableIter iter;
  gpointer each;

  g_hash_table_iter_init (&iter, self->mounts);
  while (g_hash_table_iter_next (&iter, NULL, &each)) {
    SharedMount *mount = each;

    if (g_hash_table_contains (paths, mount->path))
      continue;
    mount->is_lost |= was_replaced && !mount->is_deleted && mount->value;
    mount->is_written = FALSE;
    if (mount->is_lost) {
      mount->revision = 0;
      continue;
    }
    stop_serving (self, mount);
    g_hash_table_iter_remove (&iter);
  }
}

// ---- an etcd that was replaced ----

static void
on_era (JsonObject *answer, const GError *error, gpointer data)
{
  ((SharedMounts *) data)->asking = FALSE; // the watch tells which one it is
}

static void
begin_era (SharedMounts *self)
{
  g_autofree gchar *era = g_uuid_string_random ();

  if (!self->lacks_era || self->asking)
    return;
  self->asking = TRUE;
  etcd_call (self->etcd, "/v3/kv/txn",
      etcd_replace_body (cluster_map_get_era_key (self->map), era, 0), on_era, self);
}

void
shared_mounts_listed (SharedMounts *self, const GPtrArray *entries)
{
  g_autoptr (GHashTable) paths = g_hash_table_new (g_str_hash, g_str_equal);
  const gchar *era = NULL;

  for (guint i = 0; i < entries->len; i++) {
    const EtcdEntry *entry = g_ptr_array_index (entries, i);
    const gchar *path = get_path (self, entry);

    if (path)
      g_hash_table_add (paths, (gpointer) path);
    else if (is_era (self, entry))
      era = entry->value;
  }
  miss (self, paths, self->era && g_strcmp0 (era, self->era) != 0);
  for (guint i = 0; i < entries->len; i++) {
    const EtcdEntry *entry = g_ptr_array_index (entries, i);
    const gchar *path = get_path (self, entry);

    if (path)
      take_value (self, path, entry->value, entry->revision);
  }
  if (era)
    set_era (self, era);
  self->lacks_era = !era;
  begin_era (self);
  look_at_all (self, FALSE);
}

static void write_lost (SharedMounts *self);

static void
on_written (JsonObject *answer, const GError *error, gpointer data)
{
  SharedMounts *self = data;
  SharedMount *mount = g_hash_table_lookup (self->mounts, self->writing);

  g_clear_pointer (&self->writing, g_free);
  if (error)
    return; // the next look tries again
  if (mount)
    mount->is_written = TRUE;
  write_lost (self);
}

// Writes the next mount that etcd has lost. One that another member has written before stays.
static void
write_lost (SharedMounts *self)
{
  GHashTableIter iter;
  gpointer each;

  g_hash_table_iter_init (&iter, self->mounts);
  while (!self->writing && g_hash_table_iter_next (&iter, NULL, &each)) {
    SharedMount *mount = each;
    g_autofree gchar *key = NULL;

    if (!mount->is_lost || mount->is_written)
      continue;
    self->writing = g_strdup (mount->path);
    key = g_strconcat (cluster_map_get_mounts_key (self->map), mount->path, NULL);
    etcd_call (
        self->etcd, "/v3/kv/txn", etcd_replace_body (key, mount->value, 0), on_written, self);
  }
}

void
shared_mounts_look (SharedMounts *self)
{
  const gint64 now = clock_now ();
  const gboolean retries = now >= self->retry_at;

  if (retries)
    self->retry_at = now + RETRY_NS;
  if (cluster_map_is_whole (self->map)) {
    begin_era (self);
    write_lost (self);
  }
  look_at_all (self, retries);
}

// ---- views ----

gboolean
shared_mounts_find (SharedMounts *self, const gchar *path, SharedMountView *view)
{
  const SharedMount *mount = g_hash_table_lookup (self->mounts, path);
  g_autoptr (Mount) here = mounts_get (proxy_get_mounts (self->proxy), path);

  if (!mount || mount->is_deleted)
    return FALSE;
  *view =
      (SharedMountView) { mount->path, mount->value, mount->revision, SHARED_MOUNT_SERVED, NULL };
  if (here && is_of_file (mount_get_config (here))) {
    view->state = SHARED_MOUNT_IN_FILE;
  } else if (mount->problem) {
    view->state = SHARED_MOUNT_WRONG;
    view->problem = mount->problem;
  }
  return TRUE;
}

static gint
compare_paths (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const gchar *const *) a, *(const gchar *const *) b);
}

GPtrArray *
shared_mounts_list (SharedMounts *self)
{
  GPtrArray *paths = g_ptr_array_new_with_free_func (g_free);
  GHashTableIter iter;
  gpointer path;

  g_hash_table_iter_init (&iter, self->mounts);
  while (g_hash_table_iter_next (&iter, &path, NULL))
    g_ptr_array_add (paths, g_strdup (path));
  g_ptr_array_sort (paths, compare_paths);
  return paths;
}

// ---- changes ----

typedef struct {
  SharedMounts *mounts;
  gchar *path, *value;
  SharedMountsDone done;
  gpointer data;
} Change;

static void
take_change (Change *change, gint64 revision)
{
  SharedMounts *self = change->mounts;
  SharedMount *mount = g_hash_table_lookup (self->mounts, change->path);

  if (mount && mount->revision >= revision)
    return; // the watch was faster
  if (change->value) {
    take_value (self, change->path, change->value, revision);
    look_at_all (self, FALSE);
  } else if (mount) {
    stop_serving (self, mount);
    mount->is_deleted = TRUE;
    mount->revision = revision;
  }
}

static void
on_changed (JsonObject *answer, const GError *error, gpointer data)
{
  Change *change = data;
  gint64 revision = 0;
  const gboolean succeeded = answer && etcd_replace_succeeded (answer, change->value, &revision);
  g_autoptr (GError) conflict = NULL;

  if (succeeded)
    take_change (change, revision);
  else if (answer)
    conflict = g_error_new (
        G_IO_ERROR, G_IO_ERROR_EXISTS, "another member has changed %s meanwhile", change->path);
  change->done (revision, conflict ? conflict : error, change->data);
  g_free (change->path);
  g_free (change->value);
  g_free (change);
}

void
shared_mounts_change (SharedMounts *self, const gchar *path, const gchar *value, gint64 revision,
    SharedMountsDone done, gpointer data)
{
  g_autofree gchar *key = g_strconcat (cluster_map_get_mounts_key (self->map), path, NULL);
  Change *change = g_new (Change, 1);

  *change = (Change) { self, g_strdup (path), g_strdup (value), done, data };
  etcd_call (
      self->etcd, "/v3/kv/txn", etcd_replace_body (key, value, revision), on_changed, change);
}

// ---- construction ----

void
shared_mounts_start (SharedMounts *self)
{
  self->serving = TRUE;
  look_at_all (self, TRUE);
}

void
shared_mounts_stop (SharedMounts *self)
{
  self->serving = FALSE;
}

SharedMounts *
shared_mounts_new (Etcd *etcd, ClusterMap *map, Proxy *proxy)
{
  SharedMounts *self = g_new0 (SharedMounts, 1);

  *self = (SharedMounts) { .etcd = etcd, .map = map, .proxy = proxy };
  self->strange = LOG_LIMIT_FAILURES;
  self->mounts = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, mount_free);
  return self;
}

void
shared_mounts_free (SharedMounts *self)
{
  g_hash_table_unref (self->mounts);
  g_free (self->era);
  g_free (self->writing);
  g_free (self);
}
