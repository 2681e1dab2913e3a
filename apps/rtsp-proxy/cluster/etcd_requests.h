// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Bodies of calls of etcd, and what their answers say.

#include "cluster/etcd.h"

// For /v3/kv/put, under a lease.
JsonBuilder *etcd_put_body (const gchar *key, const gchar *value, gint64 lease);

// For /v3/kv/txn: puts the key if there is none. Returns from its answer whether the key is there
// under this lease: an answer to an earlier call may have been lost. If not, sets `existing` to the
// value that the key has (transfer full), or to NULL.
JsonBuilder *etcd_create_body (const gchar *key, const gchar *value, gint64 lease);
gboolean etcd_create_succeeded (JsonObject *answer, gint64 lease, gchar **existing);

// For /v3/kv/txn: puts the key (`value` NULL: deletes it) if its last change was `revision`; 0:
// there is no such key. Returns from its answer whether the key is now as wanted, and since which
// revision.
JsonBuilder *etcd_replace_body (const gchar *key, const gchar *value, gint64 revision);
gboolean etcd_replace_succeeded (JsonObject *answer, const gchar *value, gint64 *revision);

// For /v3/kv/txn: deletes the key if it is under this lease.
JsonBuilder *etcd_delete_body (const gchar *key, gint64 lease);
