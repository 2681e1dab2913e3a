// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cluster/map.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/timer.h"
#include "config/cluster_config.h"
#include "text/json_strict.h"

#include <string.h>

#define MEMBERS "members/"
#define OWNERS "owners"
#define TAKERS "takers/"
#define MOUNTS "mounts"
#define ERA "era"
#define DEPTH_MAX 8
#define TICK_MS 500
// What is missing in a list may be there soon again: etcd was replaced by an empty one, and each
// member has to notice that.
#define GRACE (G_GINT64_CONSTANT (1000000000) * (CLUSTER_LEASE_S + 2))
#define GRACE_JOINED G_GINT64_CONSTANT (2000000000)

struct _ClusterMap {
  EtcdWatch *watch;
  gchar *prefix; // with the schema
  gchar *mounts_key, *era_key;
  const ClusterMapOps *ops;
  gpointer owner;
  GHashTable *keys; // key without the prefix -> gint64: since when it is missing, ns; or 0
  GHashTable *members, *streams;
  LogLimit strange;
  Timer *timer;
};

// ---- values ----

void
cluster_member_free (ClusterMember *self)
{
  g_free (self->name);
  g_free (self->address);
  g_free (self->version);
  g_free (self->instance);
  g_free (self);
}

static gdouble
get_number (JsonObject *object, const gchar *name, gdouble max)
{
  gdouble number = 0;

  return json_strict_number (object, name, &number) ? CLAMP (number, 0, max) : 0;
}

ClusterMember *
cluster_member_read (const gchar *name, const gchar *value)
{
  g_autoptr (JsonObject) object =
      value ? json_strict_read (value, strlen (value), DEPTH_MAX) : NULL;
  JsonObject *ports = object ? etcd_get_object (object, "ports") : NULL;
  const gchar *address = object ? json_strict_text (object, "address") : NULL;
  ClusterMember *self;

  if (!cluster_config_is_name (name) || !address || !cluster_config_is_address (address) || !ports)
    return NULL;
  self = g_new0 (ClusterMember, 1);
  self->name = g_strdup (name);
  self->address = g_strdup (address);
  self->version = g_strdup (json_strict_text (object, "version"));
  self->instance = g_strdup (json_strict_text (object, "instance"));
  self->rtsp = (guint16) get_number (ports, "rtsp", G_MAXUINT16);
  self->rtsps = (guint16) get_number (ports, "rtsps", G_MAXUINT16);
  self->http = (guint16) get_number (ports, "http", G_MAXUINT16);
  self->https = (guint16) get_number (ports, "https", G_MAXUINT16);
  self->readers = (guint) get_number (object, "readers", G_MAXINT);
  self->rate = (guint64) get_number (object, "rate", 1e15);
  self->cpu = get_number (object, "cpu", 1e6);
  self->drains = g_strcmp0 (json_strict_text (object, "state"), "draining") == 0;
  self->is_full = etcd_get_boolean (object, "full");
  self->ahead_s = (gint64) get_number (object, "clock", 1e12) - g_get_real_time () / G_USEC_PER_SEC;
  return self;
}

gchar *
cluster_owner_dup_member (const gchar *value)
{
  g_autoptr (JsonObject) object =
      value ? json_strict_read (value, strlen (value), DEPTH_MAX) : NULL;

  return object ? g_strdup (json_strict_text (object, "member")) : NULL;
}

static void
taker_free (gpointer data)
{
  ClusterTaker *self = data;

  g_free (self->member);
  g_free (self->parent);
  g_free (self->fed);
  g_free (self);
}

static void
stream_free (gpointer data)
{
  ClusterStream *self = data;

  g_free (self->path);
  g_free (self->owner);
  g_ptr_array_unref (self->takers);
  g_free (self);
}

// ---- changes ----

static ClusterStream *
get_stream (ClusterMap *self, const gchar *path)
{
  ClusterStream *stream = g_hash_table_lookup (self->streams, path);

  if (stream)
    return stream;
  stream = g_new0 (ClusterStream, 1);
  stream->path = g_strdup (path);
  stream->takers = g_ptr_array_new_with_free_func (taker_free);
  g_hash_table_insert (self->streams, stream->path, stream);
  return stream;
}

static void
tell_stream (ClusterMap *self, ClusterStream *stream)
{
  g_autofree gchar *path = g_strdup (stream->path);

  if (!stream->owner && stream->takers->len == 0)
    g_hash_table_remove (self->streams, path);
  self->ops->stream_changed (self->owner, path);
}

static gboolean
needs_telling (const ClusterMember *from, const ClusterMember *to)
{
  return !from || !g_str_equal (from->address, to->address) || from->rtsp != to->rtsp
         || from->rtsps != to->rtsps || from->drains != to->drains
         || g_strcmp0 (from->instance, to->instance) != 0;
}

static gboolean
put_member (ClusterMap *self, const gchar *name, const EtcdEntry *entry)
{
  ClusterMember *from = g_hash_table_lookup (self->members, name);
  ClusterMember *to = cluster_member_read (name, entry->value);
  gboolean tells;

  if (!to)
    return FALSE;
  tells = needs_telling (from, to);
  g_hash_table_replace (self->members, to->name, to);
  if (tells)
    self->ops->members_changed (self->owner);
  return TRUE;
}

static gboolean
put_owner (ClusterMap *self, const gchar *path, const EtcdEntry *entry)
{
  gchar *member = cluster_owner_dup_member (entry->value);
  ClusterStream *stream;

  if (!member)
    return FALSE;
  stream = get_stream (self, path);
  g_free (stream->owner);
  stream->owner = member;
  tell_stream (self, stream);
  return TRUE;
}

static ClusterTaker *
find_taker (ClusterStream *stream, const gchar *member)
{
  for (guint i = 0; i < stream->takers->len; i++) {
    ClusterTaker *taker = g_ptr_array_index (stream->takers, i);

    if (g_str_equal (taker->member, member))
      return taker;
  }
  return NULL;
}

static gint
compare_takers (gconstpointer a, gconstpointer b)
{
  const ClusterTaker *x = *(ClusterTaker *const *) a, *y = *(ClusterTaker *const *) b;

  return x->created < y->created ? -1 : x->created > y->created;
}

static gboolean
put_taker (ClusterMap *self, const gchar *rest, const EtcdEntry *entry)
{
  const gchar *path = strchr (rest, '/');
  g_autofree gchar *member = path ? g_strndup (rest, (gsize) (path - rest)) : NULL;
  g_autoptr (JsonObject) object =
      entry->value ? json_strict_read (entry->value, strlen (entry->value), DEPTH_MAX) : NULL;
  ClusterStream *stream;
  ClusterTaker *taker;

  if (!path || !object)
    return FALSE;
  stream = get_stream (self, path);
  taker = find_taker (stream, member);
  if (!taker) {
    taker = g_new0 (ClusterTaker, 1);
    taker->member = g_strdup (member);
    g_ptr_array_add (stream->takers, taker);
  }
  g_free (taker->parent);
  g_free (taker->fed);
  taker->parent = g_strdup (json_strict_text (object, "parent"));
  taker->fed = g_strdup (json_strict_text (object, "fed"));
  taker->created = entry->created;
  g_ptr_array_sort (stream->takers, compare_takers);
  tell_stream (self, stream);
  return TRUE;
}

static void
forget_taker (ClusterMap *self, const gchar *rest)
{
  const gchar *path = strchr (rest, '/');
  ClusterStream *stream = path ? g_hash_table_lookup (self->streams, path) : NULL;
  g_autofree gchar *member = path ? g_strndup (rest, (gsize) (path - rest)) : NULL;
  ClusterTaker *taker = stream ? find_taker (stream, member) : NULL;

  if (!taker)
    return;
  g_ptr_array_remove (stream->takers, taker);
  tell_stream (self, stream);
}

// Returns what follows a part of a key, or NULL.
static const gchar *
behind (const gchar *key, const gchar *part)
{
  return g_str_has_prefix (key, part) ? key + strlen (part) : NULL;
}

// Forgets a key, which is without the prefix.
static void
forget (ClusterMap *self, const gchar *key)
{
  const gchar *name = behind (key, MEMBERS), *path = behind (key, OWNERS);
  const gchar *taker = behind (key, TAKERS);
  ClusterStream *stream = path ? g_hash_table_lookup (self->streams, path) : NULL;

  if (name && g_hash_table_remove (self->members, name))
    self->ops->members_changed (self->owner);
  else if (taker)
    forget_taker (self, taker);
  if (!stream)
    return;
  g_clear_pointer (&stream->owner, g_free);
  tell_stream (self, stream);
}

// Reports whether the key is one of the mounts, which others read.
static gboolean
is_of_mounts (ClusterMap *self, const gchar *key)
{
  const gchar *path = behind (key, self->mounts_key);

  return (path && *path == '/') || g_str_equal (key, self->era_key);
}

static void
put (ClusterMap *self, const EtcdEntry *entry)
{
  const gchar *key = behind (entry->key, self->prefix);
  const gchar *name = key ? behind (key, MEMBERS) : NULL, *path = key ? behind (key, OWNERS) : NULL;
  const gchar *taker = key ? behind (key, TAKERS) : NULL;
  gboolean understood = FALSE;

  if (!key || is_of_mounts (self, entry->key))
    return;
  if (name)
    understood = put_member (self, name, entry);
  else if (path && *path == '/')
    understood = put_owner (self, path, entry);
  else if (taker)
    understood = put_taker (self, taker, entry);
  if (understood)
    g_hash_table_replace (self->keys, g_strdup (key), g_new0 (gint64, 1));
  else
    log_event_limited (&self->strange,
        "cluster: the key %s of etcd is not understood; it is left "
        "alone",
        entry->key);
}

static void
on_put (gpointer data, const EtcdEntry *entry)
{
  ClusterMap *self = data;

  if (is_of_mounts (self, entry->key))
    self->ops->mounts.put (self->owner, entry);
  else
    put (self, entry);
}

static void
on_deleted (gpointer data, const EtcdEntry *entry)
{
  ClusterMap *self = data;
  const gchar *key = behind (entry->key, self->prefix);

  if (is_of_mounts (self, entry->key))
    self->ops->mounts.deleted (self->owner, entry);
  else if (key && g_hash_table_remove (self->keys, key))
    forget (self, key);
}

static void
on_listed (gpointer data, const GPtrArray *entries)
{
  ClusterMap *self = data;
  const gint64 now = clock_now ();
  GHashTableIter iter;
  gpointer missing;

  g_hash_table_iter_init (&iter, self->keys);
  while (g_hash_table_iter_next (&iter, NULL, &missing)) {
    if (*(gint64 *) missing == 0)
      *(gint64 *) missing = now;
  }
  for (guint i = 0; i < entries->len; i++)
    put (self, g_ptr_array_index (entries, i));
  self->ops->mounts.listed (self->owner, entries);
}

// Returns for how long a key counts as there that a list lacks. What a member has not written anew
// that has joined, it does not need.
static gint64
get_grace (ClusterMap *self, const gchar *key)
{
  const gchar *taker = behind (key, TAKERS), *path = taker ? strchr (taker, '/') : NULL;
  g_autofree gchar *member =
      path ? g_strdup_printf (MEMBERS "%.*s", (int) (path - taker), taker) : NULL;
  const gint64 *missing = member ? g_hash_table_lookup (self->keys, member) : NULL;

  return missing && *missing == 0 ? GRACE_JOINED : GRACE;
}

static gboolean
on_tick (gpointer data)
{
  ClusterMap *self = data;
  const gint64 now = clock_now ();
  g_autoptr (GPtrArray) gone = g_ptr_array_new_with_free_func (g_free);
  GHashTableIter iter;
  gpointer key, missing;

  if (!cluster_map_is_whole (self))
    return G_SOURCE_CONTINUE;
  g_hash_table_iter_init (&iter, self->keys);
  while (g_hash_table_iter_next (&iter, &key, &missing)) {
    if (*(gint64 *) missing != 0 && now - *(gint64 *) missing >= get_grace (self, key)) {
      g_ptr_array_add (gone, g_strdup (key));
      g_hash_table_iter_remove (&iter);
    }
  }
  for (guint i = 0; i < gone->len; i++)
    forget (self, g_ptr_array_index (gone, i));
  return G_SOURCE_CONTINUE;
}

void
cluster_map_note_owner (ClusterMap *self, const gchar *path, const gchar *owner)
{
  ClusterStream *stream = get_stream (self, path);

  g_free (stream->owner);
  stream->owner = g_strdup (owner);
  if (owner)
    g_hash_table_replace (self->keys, g_strconcat (OWNERS, path, NULL), g_new0 (gint64, 1));
  else if (stream->takers->len == 0)
    g_hash_table_remove (self->streams, path);
}

// ---- views ----

gint64
cluster_map_get_revision (ClusterMap *self)
{
  return etcd_watch_get_revision (self->watch);
}

gboolean
cluster_map_is_whole (ClusterMap *self)
{
  return etcd_watch_is_whole (self->watch);
}

const ClusterMember *
cluster_map_get_member (ClusterMap *self, const gchar *name)
{
  return g_hash_table_lookup (self->members, name);
}

const ClusterStream *
cluster_map_get_stream (ClusterMap *self, const gchar *path)
{
  return g_hash_table_lookup (self->streams, path);
}

// The first field of both is the text by which they are sorted.
static gint
compare_texts (gconstpointer a, gconstpointer b)
{
  return strcmp (**(gchar *const *const *) a, **(gchar *const *const *) b);
}

static GPtrArray *
list_sorted (GHashTable *table)
{
  GPtrArray *array = g_ptr_array_new ();
  GHashTableIter iter;
  gpointer each;

  g_hash_table_iter_init (&iter, table);
  while (g_hash_table_iter_next (&iter, NULL, &each))
    g_ptr_array_add (array, each);
  g_ptr_array_sort (array, compare_texts);
  return array;
}

GPtrArray *
cluster_map_list_members (ClusterMap *self)
{
  return list_sorted (self->members);
}

GPtrArray *
cluster_map_list_streams (ClusterMap *self)
{
  return list_sorted (self->streams);
}

gboolean
cluster_map_feeds_others (ClusterMap *self, const gchar *name)
{
  GHashTableIter iter;
  gpointer each;

  g_hash_table_iter_init (&iter, self->streams);
  while (g_hash_table_iter_next (&iter, NULL, &each)) {
    const ClusterStream *stream = each;

    for (guint i = 0; i < stream->takers->len; i++) {
      const ClusterTaker *taker = g_ptr_array_index (stream->takers, i);

      if (g_strcmp0 (taker->fed, name) == 0)
        return TRUE;
    }
  }
  return FALSE;
}

const gchar *
cluster_map_get_mounts_key (ClusterMap *self)
{
  return self->mounts_key;
}

const gchar *
cluster_map_get_era_key (ClusterMap *self)
{
  return self->era_key;
}

gchar *
cluster_map_dup_member_key (ClusterMap *self, const gchar *name)
{
  return g_strconcat (self->prefix, MEMBERS, name, NULL);
}

gchar *
cluster_map_dup_owner_key (ClusterMap *self, const gchar *path)
{
  return g_strconcat (self->prefix, OWNERS, path, NULL);
}

gchar *
cluster_map_dup_taker_key (ClusterMap *self, const gchar *name, const gchar *path)
{
  return g_strconcat (self->prefix, TAKERS, name, path, NULL);
}

// ---- construction ----

ClusterMap *
cluster_map_new (Etcd *etcd, const gchar *prefix, const ClusterMapOps *ops, gpointer owner)
{
  static const EtcdWatchOps watch_ops = { on_listed, on_put, on_deleted };
  ClusterMap *self = g_new0 (ClusterMap, 1);

  self->prefix = g_strconcat (prefix, CLUSTER_SCHEMA, NULL);
  self->mounts_key = g_strconcat (self->prefix, MOUNTS, NULL);
  self->era_key = g_strconcat (self->prefix, ERA, NULL);
  self->ops = ops;
  self->owner = owner;
  self->strange = LOG_LIMIT_FAILURES;
  self->keys = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  self->members =
      g_hash_table_new_full (g_str_hash, g_str_equal, NULL, (GDestroyNotify) cluster_member_free);
  self->streams = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, stream_free);
  self->watch = etcd_watch_new (etcd, self->prefix, &watch_ops, self);
  self->timer = timer_add (TICK_MS, on_tick, self);
  return self;
}

void
cluster_map_stop (ClusterMap *self)
{
  g_clear_pointer (&self->timer, timer_remove);
  etcd_watch_stop (self->watch);
}

void
cluster_map_free (ClusterMap *self)
{
  etcd_watch_free (self->watch);
  g_hash_table_unref (self->keys);
  g_hash_table_unref (self->members);
  g_hash_table_unref (self->streams);
  g_free (self->prefix);
  g_free (self->mounts_key);
  g_free (self->era_key);
  g_free (self);
}
