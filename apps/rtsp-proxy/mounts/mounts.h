// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// All mounts of a server, by path. For each request, an outlet calls mounts_resolve(),
// access_ask() and mounts_use() or mounts_open_title(), in this order. Call from the main thread
// only, unless the function says otherwise.

#include "mounts/mount.h"

typedef struct _Mounts Mounts;

// A path of the file with variables makes mounts when they are asked for, the most exact path
// first. They stay until nobody has used them for the time `linger`.

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
// (transfer full), or NULL. `*exists` says whether there is such a mount, or can be. Call from any
// thread.
MountConfig *mounts_dup_publish_config (Mounts *self, const gchar *path, gboolean *exists);

// Returns references to all mounts, sorted by path. Call from any thread. (transfer full)
GPtrArray *mounts_dup_all (Mounts *self);

// Sets the configurations of all paths with variables; the mounts that others have made change or
// go.
void mounts_set_patterns (Mounts *self, GPtrArray *patterns);

// Returns those configurations, the most exact path first. Call from any thread. (transfer full)
GPtrArray *mounts_dup_patterns (Mounts *self);

// Returns the number of mounts that a path with variables has made. Call from any thread.
guint mounts_count_instances (Mounts *self, const MountPattern *pattern);

// Returns the configuration that the mount with this path, which was made so, has by its pattern
// now; NULL: there is none any more. (transfer full)
MountConfig *mounts_dup_instance_config (Mounts *self, const gchar *path);

// Returns the paths of mounts that were made so and that nobody has used for their time `linger`.
// Call about each second. (transfer full)
GPtrArray *mounts_dup_unused (Mounts *self, gint64 now);

// Stops a mount that was made so, and removes it. Returns it, or NULL. (transfer full)
Mount *mounts_end_instance (Mounts *self, const gchar *path);

// ---- requests; call from any thread ----

// The target of a demand: a presentation or a title.
typedef struct {
  Mount *mount; // NULL: a mount that `instance` describes, and that is not made yet
  MountConfig *instance;
  gchar *title;         // name of a title in the mount's folder; NULL for a presentation
  gchar *path;          // path of the presentation, which need not exist; NULL for a session
  gboolean is_below;    // `path` is below the mount's: join an existing presentation, start none
  const gchar *choices; // for the mount's stages, or NULL; owned by the demand
} Resolved;

// Finds the target of a demand; changes, makes and starts nothing. Returns FALSE and sets `error`
// if there is none. Otherwise call resolved_clear() before the demand is freed.
gboolean mounts_resolve (Mounts *self, const Demand *demand, Resolved *resolved, GError **error);
void resolved_clear (Resolved *self);

// Returns the path of the target's mount, which may not be made yet; NULL for no target.
const gchar *resolved_get_mount_path (const Resolved *self);

// Makes the mount of a resolved demand, if that is not done yet. Call when the client may use it.
// Returns FALSE, clears `resolved` and sets `error` on failure, G_IO_ERROR_BUSY if its pattern has
// made as many as it may.
gboolean mounts_make (Mounts *self, const Demand *demand, Resolved *resolved, GError **error);

// Makes the mount with this path for a publisher that may use it. Returns FALSE and sets `error` if
// it cannot be made; it is no error if there is no such mount, or one that nothing makes.
gboolean mounts_make_path (Mounts *self, const gchar *path, GError **error);

// Reports whether there is a mount with exactly this path, or can be.
gboolean mounts_has (Mounts *self, const gchar *path);

// Starts or joins the target. Returns NULL and sets `error` on failure; G_IO_ERROR_BUSY means that
// a limit is reached, G_IO_ERROR_NOT_FOUND that the target is a title. The caller gets a reference
// and a use, which presentation_leave() ends.
Presentation *mounts_use (const Resolved *resolved, GError **error);

// Resolves a demand, and starts or joins its target.
Presentation *mounts_use_demand (Mounts *self, const Demand *demand, GError **error);

// Opens the target, which is a title. Returns NULL and sets `error` on failure, see titles_open();
// title_leave() ends the use. (transfer full)
Title *mounts_open_title (const Resolved *resolved, GError **error);
