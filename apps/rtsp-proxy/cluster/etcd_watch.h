// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// All keys that begin with a prefix, and their changes. Whenever the connection breaks, they are
// listed again. Call from the main thread only.

#include "cluster/etcd.h"

typedef struct {
  gchar *key;
  gchar *value;    // NULL: it is not text
  gint64 created;  // revision
  gint64 revision; // of the last change, such as that it was deleted
} EtcdEntry;

// The functions may not free the watch.
typedef struct {
  // These are all keys (of EtcdEntry): at the beginning, and after each break.
  void (*listed) (gpointer owner, const GPtrArray *entries);
  void (*put) (gpointer owner, const EtcdEntry *entry);
  void (*deleted) (gpointer owner, const EtcdEntry *entry); // its value is ""
} EtcdWatchOps;

typedef struct _EtcdWatch EtcdWatch;

// `etcd` and `owner` must outlive the result.
EtcdWatch *etcd_watch_new (
    Etcd *etcd, const gchar *prefix, const EtcdWatchOps *ops, gpointer owner);

// Ends the connection. The result must outlive the calls of `etcd`: free that, and then the watch.
void etcd_watch_stop (EtcdWatch *self);
void etcd_watch_free (EtcdWatch *self);

// Returns the revision of the last list or change; 0: none yet.
gint64 etcd_watch_get_revision (EtcdWatch *self);

// Reports whether changes come: the last list is the truth.
gboolean etcd_watch_is_whole (EtcdWatch *self);
