// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The entry of this member in etcd, which says where and how it serves. It is under a lease, so
// that it goes with the process. Call from the main thread only.

#include "cluster/etcd_lease.h"
#include "cluster/map.h"
#include "proxy/proxy.h"

typedef struct {
  // This member may put keys under this lease, and the ones that it had are gone.
  void (*joined) (gpointer owner, gint64 lease);
  void (*left) (gpointer owner); // its keys are gone, or may be
} RegistrationOps;

typedef struct _Registration Registration;

// All must outlive the result, which must outlive the calls of `etcd`.
Registration *registration_new (Etcd *etcd, ClusterMap *map, Proxy *proxy,
    const ProxyConfig *config, const RegistrationOps *ops, gpointer owner);

// Tells the others that this member drains: none of them may read from it any more.
void registration_drain (Registration *self);

// Stops its timers.
void registration_stop (Registration *self);
void registration_free (Registration *self);

// Gives the entry and the lease back; see etcd_lease_revoke().
void registration_revoke (Registration *self, EtcdDone done, gpointer data);

const gchar *registration_get_name (Registration *self);
gint64 registration_get_lease (Registration *self); // 0: the member is not registered

// Returns why etcd or another member does not let this one in, or NULL. Valid until the next event
// of the main loop.
const gchar *registration_get_refusal (Registration *self);
