// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// This proxy as a member of a cluster: what the members agree on is in etcd. Without etcd, each
// serves on with what it knows. Call from the main thread only.

#include "proxy/proxy.h"

typedef struct _Cluster Cluster;

// Says before the mounts are made whether they will share their upstreams.
void cluster_prepare (const ProxyConfig *config);

// Joins the cluster of the configuration, once the listeners are known. Waits up to 3 s for etcd,
// and goes on without. Returns NULL if there is none in the configuration; or if the member is
// refused, and sets `error`. `proxy` must outlive the result.
Cluster *cluster_new (Proxy *proxy, const ProxyConfig *config, GError **error);

// Leaves. The others know it at once. Free it after the mounts have stopped.
void cluster_leave (Cluster *self);
void cluster_free (Cluster *self);

// Writes what the member knows as the members of a JSON object. `self` may be NULL.
void cluster_write (Cluster *self, JsonBuilder *builder);
