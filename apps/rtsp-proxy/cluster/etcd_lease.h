// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A lease: keys that are put under it go when this process does not renew it in time. Call from the
// main thread only.

#include "cluster/etcd.h"

typedef struct _EtcdLease EtcdLease;

typedef struct {
  // There is a lease: the first one, or another one after `lost`.
  void (*granted) (gpointer owner, gint64 id);
  // The lease has run out, or may have. Another one is asked for until it is granted.
  void (*lost) (gpointer owner);
  // etcd refuses: this is asked again until it does not.
  void (*refused) (gpointer owner, const GError *error);
} EtcdLeaseOps;

// `etcd` and `owner` must outlive the result, which must outlive the calls of `etcd`: free that
// first.
EtcdLease *etcd_lease_new (Etcd *etcd, guint ttl_s, const EtcdLeaseOps *ops, gpointer owner);
void etcd_lease_free (EtcdLease *self);

gint64 etcd_lease_get_id (EtcdLease *self); // 0: none

// Gives the lease back, with its keys, and asks for no other. Calls `done` when etcd has answered,
// or does not.
void etcd_lease_revoke (EtcdLease *self, EtcdDone done, gpointer data);
