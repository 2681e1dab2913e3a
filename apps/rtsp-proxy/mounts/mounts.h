// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// All mounts of a server, by path, and two of the three calls by which every outlet gets at what it
// is asked for: resolve, admit (access/), use. Main thread only, but for what says otherwise.

#include "content/content.h"
#include "mounts/mount.h"

typedef struct _Mounts Mounts;

// `context` must outlive them.
Mounts *mounts_new (const MountContext *context);
void mounts_free (Mounts *self);

// Adds a mount, which is to be started, or NULL and an error.
Mount *mounts_add (Mounts *self, MountConfig *config, GError **error);

// Takes it away, but does not stop it.
void mounts_remove (Mounts *self, const gchar *path);

// A reference to the mount of an exact path, or NULL. Any thread.
Mount *mounts_get (Mounts *self, const gchar *path);

// References to all, by path; to be freed with g_ptr_array_unref().
GPtrArray *mounts_dup_all (Mounts *self);

// ---- what is asked for; any thread ----

// What a demand names.
typedef struct {
  Mount *mount;
  gchar *title;         // of the mount's folder, as in the URL; NULL: a presentation
  gchar *path;          // of the presentation, whether it is there or not; NULL: each has another
  gboolean is_below;    // that path itself was asked for: it can be joined, but not started
  const gchar *choices; // of its stages, or NULL; the demand's
} Resolved;

// Is there such a thing? Touches and starts nothing. FALSE and an error if not; else to be cleared
// before the demand is freed.
gboolean mounts_resolve (Mounts *self, const Demand *demand, Resolved *resolved, GError **error);
void resolved_clear (Resolved *self);

// Is this what it resolved to, in use already?
gboolean resolved_is (const Resolved *self, Content *content);

// Starts or joins it. NULL and an error if that can't be: G_IO_ERROR_BUSY, it is too much now.
Content *mounts_use (Mounts *self, const Resolved *resolved, GError **error);
