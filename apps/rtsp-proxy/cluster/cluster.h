// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// This proxy as a member of a cluster: what the members agree on is in etcd. Without etcd, each
// serves on with what it knows. Call from the main thread only.

#include "cluster/shared_mounts.h"
#include "proxy/proxy.h"

typedef struct _Cluster Cluster;

// Says before the mounts are made whether they will share their upstreams.
void cluster_prepare (const ProxyConfig *config);

// Joins the cluster of the configuration, once the listeners are known. Waits up to 3 s for etcd,
// and goes on without. Returns NULL if there is none in the configuration; or if the member is
// refused, and sets `error`. `proxy` must outlive the result.
Cluster *cluster_new (Proxy *proxy, const ProxyConfig *config, GError **error);

// Begins to serve the mounts that etcd keeps, if the configuration says so. Call when those of the
// file have started.
void cluster_start (Cluster *self);

// Returns those mounts, or NULL if etcd keeps none. `self` may be NULL.
SharedMounts *cluster_get_mounts (Cluster *self);

// Sends new readers to the member that has the fewest, and lets the others take over the streams
// that they read from this one, before it leaves. No effect without others.
void cluster_drain (Cluster *self);

// Drains, and waits up to 5 s until nobody reads from this member. Call while readers are served.
void cluster_hand_over (Cluster *self);

// Leaves. The others know it at once. Free it after the mounts have stopped.
void cluster_leave (Cluster *self);
void cluster_free (Cluster *self);

// Writes the state of the member: whether it drains, and to whom. `self` may be NULL.
void cluster_write_drain (Cluster *self, JsonBuilder *builder);

typedef struct {
  gboolean is_joined, has_etcd; // etcd has this member; the last call was answered
  guint members;                // with this one
  guint owned, taken;           // streams that this member runs, and reads from others
  guint wrong_mounts;           // in etcd
  gint64 revision;              // of etcd, as known here
} ClusterFigures;

// Gets the figures for metrics: all 0 without a cluster. `self` may be NULL.
void cluster_get_figures (Cluster *self, ClusterFigures *figures);

// Writes what the member knows as the members of a JSON object. `self` may be NULL.
void cluster_write (Cluster *self, JsonBuilder *builder);
