// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A key in etcd that only this member writes, under its lease. One call at a time: two on their way
// may arrive in either order. Call from the main thread only.

#include "cluster/etcd.h"

typedef struct _OwnKey OwnKey;

// Takes ownership of `key`. `etcd` must outlive the result, which must outlive the calls of `etcd`.
OwnKey *own_key_new (Etcd *etcd, gchar *key);
void own_key_free (OwnKey *self);

// Sets what the key says (NULL: there is none) under a lease (0: none at the moment). Call it again
// now and then, with the same value: this repeats a call that has failed.
void own_key_set (OwnKey *self, const gchar *value, gint64 lease);

// The lease is gone, and the key with it.
void own_key_lose (OwnKey *self);

// Reports whether etcd has no key, and no call is under way.
gboolean own_key_is_gone (OwnKey *self);
