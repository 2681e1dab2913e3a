// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// All mounts of a server, by path. For each request, an outlet calls mounts_resolve(),
// access_ask() and mounts_use() or mounts_open_title(), in this order. Call from the main thread
// only, unless the function says otherwise.

#include "mounts/mount.h"

typedef struct _Mounts Mounts;

// `context` must outlive the result.
Mounts *mounts_new (const MountContext *context);
void mounts_free (Mounts *self);

// Adds a mount without starting it. Returns NULL and sets `error` on failure. (transfer none)
Mount *mounts_add (Mounts *self, MountConfig *config, GError **error);

// Removes a mount without stopping it. Has no effect if there is no mount with this path.
void mounts_remove (Mounts *self, const gchar *path);

// Returns the mount with exactly this path, or NULL. Call from any thread. (transfer full)
Mount *mounts_get (Mounts *self, const gchar *path);

// Returns the configuration of the mount with exactly this path if clients may publish to it
// (transfer full), or NULL. `*exists` says whether there is such a mount. Call from any thread.
MountConfig *mounts_dup_publish_config (Mounts *self, const gchar *path, gboolean *exists);

// Returns references to all mounts, sorted by path. Call from any thread. (transfer full)
GPtrArray *mounts_dup_all (Mounts *self);

// ---- requests; call from any thread ----

// The target of a demand: a presentation or a title.
typedef struct {
  Mount *mount;
  gchar *title;         // name of a title in the mount's folder; NULL for a presentation
  gchar *path;          // path of the presentation, which need not exist; NULL for a session
  gboolean is_below;    // `path` is below the mount's: join an existing presentation, start none
  const gchar *choices; // for the mount's stages, or NULL; owned by the demand
} Resolved;

// Finds the target of a demand; changes and starts nothing. Returns FALSE and sets `error` if there
// is none. Otherwise call resolved_clear() before the demand is freed.
gboolean mounts_resolve (Mounts *self, const Demand *demand, Resolved *resolved, GError **error);
void resolved_clear (Resolved *self);

// Starts or joins the target. Returns NULL and sets `error` on failure; G_IO_ERROR_BUSY means that
// a limit is reached, G_IO_ERROR_NOT_FOUND that the target is a title. The caller gets a reference
// and a use, which presentation_leave() ends.
Presentation *mounts_use (const Resolved *resolved, GError **error);

// Resolves a demand, and starts or joins its target.
Presentation *mounts_use_demand (Mounts *self, const Demand *demand, GError **error);

// Opens the target, which is a title. Returns NULL and sets `error` on failure, see titles_open();
// title_leave() ends the use. (transfer full)
Title *mounts_open_title (const Resolved *resolved, GError **error);
