// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Shared by the files of a mount: mount.c, and mount_sessions.c (sessions of a stored title).

#include "mounts/mount.h"

struct _Mount {
  gatomicrefcount refs;
  const MountContext *context;
  gchar *path;
  gchar *pattern;   // the path with variables that made the mount, or NULL
  gint64 unused_ns; // since when nobody uses it; of the main thread; 0: somebody does

  GMutex lock; // protects the fields below; threads other than the main one only add presentations
  MountConfig *config;
  GPtrArray *main_stages;    // of Stage; the chain of `main`
  GHashTable *presentations; // path -> Presentation
  Choices *choices;
  Presentation *main;    // the presentation of the path alone
  Presentation *session; // the newest session of a stored title, or NULL
  guint n_sessions;      // number of sessions ever started
  guint n_readers;       // number of presentations ever made for single readers
  guint64 n_shared;      // number of requests that joined a session
  gboolean unsought;     // the upstream played from another place than it was asked for
  Titles *titles;
  Broadcast *broadcast;          // of the titles, or NULL
  LiveBroadcast *live_broadcast; // of the stream, or NULL
  gboolean stopped;
};

// Makes a presentation. Call with the lock held.
Presentation *mount_add_presentation (
    Mount *self, const gchar *path, const gchar *query, GPtrArray *stages, guint instance);

// Returns the newest session that begins at this place of the stored title if readers still get its
// beginning, else starts a new one. Call with the lock held.
Presentation *mount_find_session (Mount *self, gint64 at, GError **error);
