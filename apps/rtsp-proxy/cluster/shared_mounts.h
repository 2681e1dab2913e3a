// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Mounts that etcd keeps for all members, as the JSON that the API takes. Each member reads and
// checks them itself, and serves those that are right, unless its own file has a mount with that
// path. Call from the main thread only.

#include "cluster/map.h"
#include "proxy/proxy.h"

#define SHARED_MOUNT_SIZE_MAX (64 << 10) // bytes of its JSON

typedef struct _SharedMounts SharedMounts;

typedef enum {
  SHARED_MOUNT_SERVED,
  SHARED_MOUNT_IN_FILE, // this member's file has another mount with that path, which wins
  SHARED_MOUNT_WRONG,   // it is not served, or as it was before
} SharedMountState;

typedef struct {
  const gchar *path;
  const gchar *value; // NULL: it is not text
  gint64 revision;    // of the last change
  SharedMountState state;
  const gchar *problem; // of SHARED_MOUNT_WRONG
} SharedMountView;

// All must outlive the result, which must outlive the calls of `etcd`.
SharedMounts *shared_mounts_new (Etcd *etcd, ClusterMap *map, Proxy *proxy);
void shared_mounts_stop (SharedMounts *self);
void shared_mounts_free (SharedMounts *self);

// For ClusterMapOps.
void shared_mounts_listed (SharedMounts *self, const GPtrArray *entries);
void shared_mounts_put (SharedMounts *self, const EtcdEntry *entry);
void shared_mounts_deleted (SharedMounts *self, const EtcdEntry *entry);

// Begins to serve them. Call when the mounts of the file have started.
void shared_mounts_start (SharedMounts *self);

// Looks whether the proxy has what it is to have: its file may have changed, or etcd does not know
// all. Call about each second.
void shared_mounts_look (SharedMounts *self);

// Finds a mount. Returns FALSE if there is none. The view is valid until the next event of the main
// loop.
gboolean shared_mounts_find (SharedMounts *self, const gchar *path, SharedMountView *view);

// Returns the paths of all, sorted. (transfer full)
GPtrArray *shared_mounts_list (SharedMounts *self);

// Called once. `error`: NULL; G_IO_ERROR_EXISTS if another member was faster; or why etcd did not
// take the change.
typedef void (*SharedMountsDone) (gint64 revision, const GError *error, gpointer data);

// Changes a mount for all members, if its last change was `revision` (0: there is none). `value`
// was checked; NULL removes the mount.
void shared_mounts_change (SharedMounts *self, const gchar *path, const gchar *value,
    gint64 revision, SharedMountsDone done, gpointer data);
