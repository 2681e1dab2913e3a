// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The parts of a broadcast: of the files broadcast*.c only.

#include "broadcast/block_cache.h"
#include "broadcast/broadcast.h"
#include "broadcast/broadcast_title.h"
#include "broadcast/sender.h"

struct _Broadcast {
  gatomicrefcount users; // references of others
  gatomicrefcount refs;  // one for all users, and one for each job
  gchar *mount_path;
  gchar *run;
  BroadcastConfig config;
  guint8 first_group[4]; // network order
  Store *store;
  BlockCache *cache;
  Sender *sender;
  GThreadPool *packetizers, *readers, *lookers;
  gint stopped; // atomic: nobody uses the broadcast any more

  GMutex lock;        // protects the fields below
  GHashTable *titles; // by name
  WeirGroupPool pool;
  gint64 due_ns; // frames before this time have been given to the sender
  gint64 tidy_ns;
  gboolean wakes; // the sender is to be woken: there is more to be sent, or to be tidied
  BroadcastStats stats;
};

// Runs in a thread of `pool`, and may wait for a disk.
void broadcast_push_job (Broadcast *self, GThreadPool *pool,
    void (*run) (Broadcast *self, gpointer data), gpointer data);

// With the lock: finds a title, or returns NULL; counts the titles in these states.
BroadcastTitle *broadcast_find_title (Broadcast *self, const gchar *name);
guint broadcast_count_titles (Broadcast *self, BroadcastTitleState from, BroadcastTitleState to);

// With the lock: adds a title that is to be packetized. Returns NULL and sets `error` if too many
// wait, or have failed recently.
BroadcastTitle *broadcast_add_title (Broadcast *self, const gchar *name, GError **error);
