// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cluster/cluster.h"

#include "base/log.h"
#include "base/main_loop.h"
#include "base/timer.h"
#include "cluster/registration.h"
#include "cluster/streams.h"
#include "readers/elsewhere.h"
#include "sources/sharing.h"

#define START_MS 3000
#define LEAVE_MS 1000
#define HAND_OVER_MS 5000
#define TICK_MS 1000

struct _Cluster {
  Etcd *etcd;
  ClusterMap *map;
  Registration *registration;
  Streams *streams;
  SharedMounts *mounts; // NULL: etcd keeps none
  GHashTable *seen;     // names of members that the log knows
  gboolean is_away;     // the log says that etcd is
  gboolean drains, has_left;
  Timer *timer;
};

// ---- the log ----

static void
log_gone (Cluster *self)
{
  GHashTableIter iter;
  gpointer name;

  g_hash_table_iter_init (&iter, self->seen);
  while (g_hash_table_iter_next (&iter, &name, NULL)) {
    if (cluster_map_get_member (self->map, name))
      continue;
    log_event ("cluster: member %s is gone", (const gchar *) name);
    g_hash_table_iter_remove (&iter);
  }
}

// Returns who has most room for new readers, or NULL.
static const ClusterMember *
find_emptiest (Cluster *self)
{
  g_autoptr (GPtrArray) members = cluster_map_list_members (self->map);
  const ClusterMember *best = NULL;

  for (guint i = 0; i < members->len; i++) {
    const ClusterMember *member = g_ptr_array_index (members, i);

    if (member->drains || member->is_full
        || g_str_equal (member->name, registration_get_name (self->registration)))
      continue;
    if (!best || member->readers < best->readers)
      best = member;
  }
  return best;
}

static void
send_readers (Cluster *self)
{
  static const guint16 none[ELSEWHERE_N];
  const ClusterMember *to = find_emptiest (self);

  if (to)
    elsewhere_set (
        to->address, (const guint16[]) { to->rtsp, to->rtsps, to->http, to->https }, self->drains);
  else
    elsewhere_set (NULL, none, FALSE);
}

static void
on_members_changed (gpointer data)
{
  Cluster *self = data;
  g_autoptr (GPtrArray) members = cluster_map_list_members (self->map);

  for (guint i = 0; i < members->len; i++) {
    const ClusterMember *member = g_ptr_array_index (members, i);

    if (!g_hash_table_add (self->seen, g_strdup (member->name)))
      continue;
    log_event ("cluster: member %s is there, at %s", member->name, member->address);
  }
  log_gone (self);
  streams_look (self->streams, NULL);
}

static void
on_stream_changed (gpointer data, const gchar *path)
{
  streams_look (((Cluster *) data)->streams, path);
}

static void
on_mounts_listed (gpointer data, const GPtrArray *entries)
{
  Cluster *self = data;

  if (self->mounts)
    shared_mounts_listed (self->mounts, entries);
}

static void
on_mount_put (gpointer data, const EtcdEntry *entry)
{
  Cluster *self = data;

  if (self->mounts)
    shared_mounts_put (self->mounts, entry);
}

static void
on_mount_deleted (gpointer data, const EtcdEntry *entry)
{
  Cluster *self = data;

  if (self->mounts)
    shared_mounts_deleted (self->mounts, entry);
}

static gboolean
on_tick (gpointer data)
{
  Cluster *self = data;
  const gboolean is_away = etcd_get_problem (self->etcd) != NULL;

  if (is_away && !self->is_away)
    log_event ("cluster: etcd does not answer, and serving goes on with what is known: %s",
        etcd_get_problem (self->etcd));
  else if (!is_away && self->is_away)
    log_event ("cluster: etcd answers again");
  self->is_away = is_away;
  send_readers (self);
  if (self->mounts)
    shared_mounts_look (self->mounts);
  return G_SOURCE_CONTINUE;
}

static void
on_joined (gpointer data, gint64 lease)
{
  streams_look (((Cluster *) data)->streams, NULL);
}

static void
on_left (gpointer data)
{
  streams_lose_keys (((Cluster *) data)->streams);
}

// ---- the API ----

static void
add_text (JsonBuilder *builder, const gchar *name, const gchar *text)
{
  json_builder_set_member_name (builder, name);
  if (text)
    json_builder_add_string_value (builder, text);
  else
    json_builder_add_null_value (builder);
}

static void
add_number (JsonBuilder *builder, const gchar *name, gint64 number)
{
  json_builder_set_member_name (builder, name);
  json_builder_add_int_value (builder, number);
}

static void
write_port (JsonBuilder *builder, const gchar *name, guint16 port)
{
  if (port)
    add_number (builder, name, port);
}

static void
write_member (JsonBuilder *builder, const ClusterMember *member)
{
  json_builder_begin_object (builder);
  add_text (builder, "name", member->name);
  add_text (builder, "address", member->address);
  json_builder_set_member_name (builder, "ports");
  json_builder_begin_object (builder);
  write_port (builder, "rtsp", member->rtsp);
  write_port (builder, "rtsps", member->rtsps);
  write_port (builder, "http", member->http);
  write_port (builder, "https", member->https);
  json_builder_end_object (builder);
  add_text (builder, "version", member->version);
  add_text (builder, "state", member->drains ? "draining" : "serving");
  add_number (builder, "readers", member->readers);
  add_number (builder, "rate", (gint64) member->rate);
  json_builder_set_member_name (builder, "cpu");
  json_builder_add_double_value (builder, member->cpu);
  add_number (builder, "clock-ahead-seconds", member->ahead_s);
  json_builder_end_object (builder);
}

static void
write_stream (JsonBuilder *builder, const ClusterStream *stream)
{
  json_builder_begin_object (builder);
  add_text (builder, "path", stream->path);
  add_text (builder, "owner", stream->owner);
  json_builder_set_member_name (builder, "readers");
  json_builder_begin_array (builder);
  for (guint i = 0; i < stream->takers->len; i++) {
    const ClusterTaker *taker = g_ptr_array_index (stream->takers, i);

    json_builder_begin_object (builder);
    add_text (builder, "member", taker->member);
    add_text (builder, "from", taker->parent && *taker->parent ? taker->parent : NULL);
    json_builder_end_object (builder);
  }
  json_builder_end_array (builder);
  json_builder_end_object (builder);
}

static void
write_mount (JsonBuilder *builder, const SharedMountView *mount)
{
  static const gchar *const states[] = { "served", "in-file", "wrong" }; // by SharedMountState

  json_builder_begin_object (builder);
  add_text (builder, "path", mount->path);
  add_number (builder, "revision", mount->revision);
  add_text (builder, "state", states[mount->state]);
  if (mount->problem)
    add_text (builder, "problem", mount->problem);
  json_builder_end_object (builder);
}

static void
write_mounts (JsonBuilder *builder, SharedMounts *mounts)
{
  g_autoptr (GPtrArray) paths = mounts ? shared_mounts_list (mounts) : g_ptr_array_new ();
  SharedMountView mount;

  json_builder_set_member_name (builder, "mounts");
  json_builder_begin_array (builder);
  for (guint i = 0; i < paths->len; i++) {
    if (shared_mounts_find (mounts, g_ptr_array_index (paths, i), &mount))
      write_mount (builder, &mount);
  }
  json_builder_end_array (builder);
}

void
cluster_write (Cluster *self, JsonBuilder *builder)
{
  g_autoptr (GPtrArray) members = self ? cluster_map_list_members (self->map) : NULL;
  g_autoptr (GPtrArray) streams = self ? cluster_map_list_streams (self->map) : NULL;

  add_text (builder, "name", self ? registration_get_name (self->registration) : NULL);
  add_text (builder, "endpoint", self ? etcd_get_endpoint (self->etcd) : NULL);
  json_builder_set_member_name (builder, "joined");
  json_builder_add_boolean_value (
      builder, self && registration_get_lease (self->registration) != 0);
  json_builder_set_member_name (builder, "whole");
  json_builder_add_boolean_value (builder, self && cluster_map_is_whole (self->map));
  add_text (builder, "problem",
      !self ? NULL
      : registration_get_refusal (self->registration)
          ? registration_get_refusal (self->registration)
          : etcd_get_problem (self->etcd));
  json_builder_set_member_name (builder, "members");
  json_builder_begin_array (builder);
  for (guint i = 0; members && i < members->len; i++)
    write_member (builder, g_ptr_array_index (members, i));
  json_builder_end_array (builder);
  json_builder_set_member_name (builder, "streams");
  json_builder_begin_array (builder);
  for (guint i = 0; streams && i < streams->len; i++)
    write_stream (builder, g_ptr_array_index (streams, i));
  json_builder_end_array (builder);
  write_mounts (builder, cluster_get_mounts (self));
}

static void
count_stream (ClusterFigures *figures, const ClusterStream *stream, const gchar *me)
{
  figures->owned += g_strcmp0 (stream->owner, me) == 0;
  for (guint i = 0; i < stream->takers->len; i++) {
    const ClusterTaker *taker = g_ptr_array_index (stream->takers, i);

    figures->taken += g_str_equal (taker->member, me) && taker->parent && *taker->parent;
  }
}

static guint
count_wrong (SharedMounts *mounts)
{
  g_autoptr (GPtrArray) paths = shared_mounts_list (mounts);
  SharedMountView mount;
  guint n = 0;

  for (guint i = 0; i < paths->len; i++)
    n += shared_mounts_find (mounts, g_ptr_array_index (paths, i), &mount)
         && mount.state == SHARED_MOUNT_WRONG;
  return n;
}

void
cluster_get_figures (Cluster *self, ClusterFigures *figures)
{
  g_autoptr (GPtrArray) members = self ? cluster_map_list_members (self->map) : NULL;
  g_autoptr (GPtrArray) streams = self ? cluster_map_list_streams (self->map) : NULL;

  *figures = (ClusterFigures) { 0 };
  if (!self)
    return;
  figures->is_joined = registration_get_lease (self->registration) != 0;
  figures->has_etcd = !etcd_get_problem (self->etcd);
  figures->members = members->len;
  figures->revision = cluster_map_get_revision (self->map);
  for (guint i = 0; i < streams->len; i++)
    count_stream (
        figures, g_ptr_array_index (streams, i), registration_get_name (self->registration));
  if (self->mounts)
    figures->wrong_mounts = count_wrong (self->mounts);
}

// ---- construction ----

static gboolean
is_settled (gpointer data)
{
  Cluster *self = data;

  return registration_get_refusal (self->registration)
         || (registration_get_lease (self->registration) && cluster_map_is_whole (self->map));
}

void
cluster_prepare (const ProxyConfig *config)
{
  if (config->cluster.address)
    sharing_expect ();
}

static Etcd *
new_etcd (const ClusterConfig *config, GError **error)
{
  const EtcdSettings settings = { (const gchar *const *) config->etcd, config->etcd_ca.path,
    config->etcd_certificate.path, config->etcd_key.path, config->etcd_user,
    config->etcd_password };

  return etcd_new (&settings, error);
}

Cluster *
cluster_new (Proxy *proxy, const ProxyConfig *config, GError **error)
{
  static const ClusterMapOps map_ops = { on_members_changed, on_stream_changed,
    { on_mounts_listed, on_mount_put, on_mount_deleted } };
  static const RegistrationOps registration_ops = { on_joined, on_left };
  Etcd *etcd = config->cluster.address ? new_etcd (&config->cluster, error) : NULL;
  const gchar *refusal;
  Cluster *self;

  if (!etcd) {
    if (error && *error)
      g_prefix_error (error, "cluster: ");
    return NULL;
  }
  self = g_new0 (Cluster, 1);
  self->etcd = etcd;
  self->seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self->map = cluster_map_new (etcd, config->cluster.prefix, &map_ops, self);
  self->registration = registration_new (etcd, self->map, proxy, config, &registration_ops, self);
  self->streams = streams_new (etcd, self->map, self->registration, &config->cluster);
  if (config->cluster.mounts)
    self->mounts = shared_mounts_new (etcd, self->map, proxy);
  self->timer = timer_add (TICK_MS, on_tick, self);
  main_loop_wait (is_settled, self, START_MS);
  refusal = registration_get_refusal (self->registration);
  if (refusal) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED, "cluster: %s", refusal);
    cluster_leave (self);
    g_clear_pointer (&self, cluster_free);
  }
  return self;
}

void
cluster_start (Cluster *self)
{
  if (self->mounts)
    shared_mounts_start (self->mounts);
}

SharedMounts *
cluster_get_mounts (Cluster *self)
{
  return self ? self->mounts : NULL;
}

static void
on_revoked (JsonObject *answer, const GError *error, gpointer data)
{
  ((Cluster *) data)->has_left = TRUE;
}

static gboolean
has_left (gpointer data)
{
  return ((Cluster *) data)->has_left;
}

void
cluster_drain (Cluster *self)
{
  if (self->drains || !find_emptiest (self))
    return;
  self->drains = TRUE;
  log_event ("cluster: drains: new readers go to %s", find_emptiest (self)->name);
  send_readers (self);
  registration_drain (self->registration);
  streams_drain (self->streams);
}

static gboolean
is_unread (gpointer data)
{
  Cluster *self = data;

  return !cluster_map_feeds_others (self->map, registration_get_name (self->registration));
}

void
cluster_hand_over (Cluster *self)
{
  cluster_drain (self);
  if (self->drains && !main_loop_wait (is_unread, self, HAND_OVER_MS))
    log_event ("cluster: some streams were not taken over in time");
}

void
cluster_write_drain (Cluster *self, JsonBuilder *builder)
{
  const ClusterMember *to = self && self->drains ? find_emptiest (self) : NULL;

  add_text (builder, "state", self && self->drains ? "draining" : "serving");
  add_text (builder, "to", to ? to->name : NULL);
}

void
cluster_leave (Cluster *self)
{
  timer_remove (self->timer);
  streams_stop (self->streams);
  if (self->mounts)
    shared_mounts_stop (self->mounts);
  registration_stop (self->registration);
  registration_revoke (self->registration, on_revoked, self);
  main_loop_wait (has_left, self, LEAVE_MS);
  cluster_map_stop (self->map);
}

void
cluster_free (Cluster *self)
{
  etcd_free (self->etcd); // ends the calls of the others
  streams_free (self->streams);
  g_clear_pointer (&self->mounts, shared_mounts_free);
  registration_free (self->registration);
  cluster_map_free (self->map);
  g_hash_table_unref (self->seen);
  g_free (self);
}
