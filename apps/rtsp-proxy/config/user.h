// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A user of the configuration, with secrets and permissions. A user does not change after it was
// read, so any thread may use it.

#include <gio/gio.h>

#include "config/action.h"

#define USERS_REALM "rtsp-proxy" // part of each digest secret

typedef struct {
  guint action;          // AccessAction
  gchar *path;           // as written; NULL: all paths
  GPatternSpec *pattern; // of a path with '*', else NULL
  gchar *place;          // FILE:LINE:COLUMN
} Permission;

typedef struct {
  gchar *name;
  gboolean is_any;          // anybody, without a secret
  gchar *argon2;            // "$argon2id$...", or NULL
  guint kib, passes, lanes; // what a check of it costs
  gchar *sha256;            // SHA-256 of the password in lower-case hex, or NULL
  gchar *md5_digest;        // MD5 of name:realm:password in lower-case hex, or NULL
  gchar *sha2_digest;       // the same with SHA-256
  GPtrArray *networks;      // of GInetAddressMask; empty: all
  GPtrArray *permissions;   // of Permission
} User;

void user_free (gpointer user);
void permission_free (gpointer permission);

// Reports whether the path of the permission, which is not NULL, is `path` or above it, or a
// pattern that matches it. `path` may be NULL.
gboolean permission_covers (const Permission *self, const gchar *path);

// Reports whether the user may come from this address, and has a permission for this action and
// path. `mount` is the path of the mount that serves `path`, or NULL: a permission for the mount is
// one for all that it serves.
gboolean user_comes_from (const User *self, GInetAddress *address);
gboolean user_may (const User *self, AccessAction action, const gchar *path, const gchar *mount);

// Reports whether the user has a permission for an action, for any path.
gboolean user_has_action (const User *self, AccessAction action);

// Reports whether the user may do anything with media: read, playback or publish.
gboolean user_may_media (const User *self);

// Reports whether the user has a secret of any kind.
gboolean user_has_secret (const User *self);

// Returns what a check of the user's argon2id hash costs: KiB times passes; 0 without one.
guint64 user_get_cost (const User *self);

// Adds all that distinguishes the user from another one.
void user_add_to_checksum (const User *self, GChecksum *checksum);
