// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Another mount of this proxy as an upstream: its packets come without a connection.

#include "sources/pull.h"

// How the mounts are found. Call from the main thread only.
typedef struct {
  // Starts the mount or joins it; sets `*relay` (transfer none), and returns what `leave` gets.
  // Returns NULL and sets `error` if there is no such mount, or if it has no stream.
  gpointer (*use) (gpointer data, const gchar *path, Relay **relay, GError **error);
  void (*leave) (gpointer use);
} MountFinder;

// Sets how mounts are found, or that there are none any more (NULL).
void mount_pull_set_finder (const MountFinder *finder, gpointer data);

// Sets the fields of an empty `config`. No configuration can name it as a URI.
void mount_pull_init (PullConfig *config, const gchar *path);

// Returns the mount's path, or NULL if the upstream is none.
const gchar *mount_pull_get_path (const PullConfig *config);
