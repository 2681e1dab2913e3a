// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What this member knows of the cluster: the keys of etcd, read. It stays when etcd does not
// answer. Call from the main thread only.

#include "cluster/etcd_watch.h"

#define CLUSTER_SCHEMA "1/" // of the keys, behind the prefix
#define CLUSTER_LEASE_S 5

typedef struct {
  gchar *name, *address, *version;
  gchar *instance;                  // another one for each process
  guint16 rtsp, rtsps, http, https; // ports; 0: it does not serve this
  guint readers;
  guint64 rate; // bits a second to readers
  gdouble cpu;  // cores in use
  gboolean drains;
  gboolean is_full; // it has no memory for new readers
  gint64 ahead_s;   // its clock's time less that of this machine
} ClusterMember;

typedef struct {
  gchar *member;
  gchar *parent;  // whom it is to read, or NULL
  gchar *fed;     // from whom its stream comes at the moment, or NULL: from its own upstream
  gint64 created; // revision
} ClusterTaker;

typedef struct {
  gchar *path;       // of the mount
  gchar *owner;      // who runs the upstream, or NULL
  GPtrArray *takers; // of ClusterTaker: who else serves the stream, the first one first
} ClusterStream;

// Members have come, have gone or have changed what others need; or a stream has.
typedef struct {
  void (*members_changed) (gpointer owner);
  void (*stream_changed) (gpointer owner, const gchar *path);
  // Those of EtcdWatch, for keys below cluster_map_get_mounts_key(); `listed` has all keys.
  EtcdWatchOps mounts;
} ClusterMapOps;

typedef struct _ClusterMap ClusterMap;

// `prefix` is that of the configuration. The map watches etcd. `etcd` and `owner` must outlive it.
ClusterMap *cluster_map_new (
    Etcd *etcd, const gchar *prefix, const ClusterMapOps *ops, gpointer owner);

// Like those of EtcdWatch.
void cluster_map_stop (ClusterMap *self);
void cluster_map_free (ClusterMap *self);

// Returns the revision of etcd that the map has; 0: none yet.
gint64 cluster_map_get_revision (ClusterMap *self);

// Reports whether the map is up to date.
gboolean cluster_map_is_whole (ClusterMap *self);

// These are valid until the next event of the main loop. They return NULL for what is not known.
const ClusterMember *cluster_map_get_member (ClusterMap *self, const gchar *name);
const ClusterStream *cluster_map_get_stream (ClusterMap *self, const gchar *path);
GPtrArray *cluster_map_list_members (ClusterMap *self); // by name; (transfer container)
GPtrArray *cluster_map_list_streams (ClusterMap *self); // by path; (transfer container)

// Reports whether the stream of any member comes from the member `name` at the moment.
gboolean cluster_map_feeds_others (ClusterMap *self, const gchar *name);

// Notes what an answer to this member has said, before the watch says it. `owner` may be NULL.
void cluster_map_note_owner (ClusterMap *self, const gchar *path, const gchar *owner);

// Returns what the keys of mounts begin with, without the slash of their paths; and the key that is
// there as long as they are (see shared_mounts.h). Valid as long as the map.
const gchar *cluster_map_get_mounts_key (ClusterMap *self);
const gchar *cluster_map_get_era_key (ClusterMap *self);

// Return keys. (transfer full)
gchar *cluster_map_dup_member_key (ClusterMap *self, const gchar *name);
gchar *cluster_map_dup_owner_key (ClusterMap *self, const gchar *path);
gchar *cluster_map_dup_taker_key (ClusterMap *self, const gchar *name, const gchar *path);

// Reads the value of a key. Returns NULL if it is not understood. (transfer full)
ClusterMember *cluster_member_read (const gchar *name, const gchar *value);
void cluster_member_free (ClusterMember *self);
gchar *cluster_owner_dup_member (const gchar *value);
