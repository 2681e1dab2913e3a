// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A path that the proxy serves, with its presentations: one for the path alone, and one for each
// set of choices that URLs make. Call from the main thread only, unless the function says
// otherwise.

#include "content/presentation.h"
#include "content/titles.h"
#include "text/demand.h"

typedef struct _Mount Mount;

// Functions of the outlet that serves the presentations. They are called from any thread unless
// they say otherwise, possibly with a mount's lock held.
typedef struct {
  // Clients can request the presentation by its path, from now on or no longer.
  void (*publish) (Presentation *presentation, gpointer data);
  void (*withdraw) (const gchar *path, gpointer data);
  // See PresentationCallbacks. Called on the main thread.
  void (*open) (Presentation *presentation, gpointer data);
  void (*configure) (Presentation *presentation, gpointer media, gpointer data);
  void (*close_readers) (Presentation *presentation, const gchar *reason, gpointer data);
} MountOutlet;

// Shared by the mounts of a server.
typedef struct {
  Graph *graph;
  const MountOutlet *outlet;
  gpointer data; // the outlet's
  const TitleOutlet *title_outlet;
  GObject *title_data; // the title outlet's
} MountContext;

// Returns NULL and sets `error` if the mount's stages cannot be made. `context` must outlive the
// running mount.
Mount *mount_new (const MountContext *context, MountConfig *config, GError **error);

// Reference counting. Call from any thread.
Mount *mount_ref (Mount *self);
void mount_unref (Mount *self);

// Changes the configuration; the path must be the same. Readers stay if possible, see
// presentation_configure(). If the new stages cannot be made, returns FALSE, sets `error` and
// changes nothing.
gboolean mount_configure (Mount *self, MountConfig *config, GError **error);

const gchar *mount_get_path (Mount *self);         // call from any thread
const MountConfig *mount_get_config (Mount *self); // valid until mount_configure()

// Sessions of an upstream that plays a stored title from its beginning (key `interval`), shared by
// readers: how many run now, and how many requests ever shared a session (`hits`) or began one
// (`misses`).
typedef struct {
  guint running;
  guint64 hits, misses;
} MountSessions;

void mount_get_sessions (Mount *self, MountSessions *sessions); // call from any thread

// Returns the presentation of the path alone. Call from any thread. (transfer full)
Presentation *mount_dup_main (Mount *self);

// Returns the state of the presentation of the path alone; see presentation_get_state_name().
const gchar *mount_get_state_name (Mount *self);

// Returns a sentence that says how mount_configure() with `to` would affect readers. (transfer
// full)
gchar *mount_dup_effect (Mount *self, const MountConfig *to);

// Starts the presentation of the path, if the mount is configured to run without readers.
void mount_start (Mount *self);

// Stops all presentations and accepts no more readers.
void mount_stop (Mount *self);

// ---- requests; call from any thread ----

// Reports whether the mount offers the demand; starts nothing. Sets `choices` to the choices for
// its stages (owned by `demand`, or NULL), and `path` to the path of the presentation, whether it
// exists or not (transfer full; NULL if each reader gets its own). Returns FALSE and sets `error`
// otherwise.
gboolean mount_resolve (
    Mount *self, const Demand *demand, const gchar **choices, gchar **path, GError **error);

// Reports whether a presentation with this path, such as "/cam/=5f1c03aa", exists now.
gboolean mount_has_path (Mount *self, const gchar *path);

// mount_use() returns the presentation of these choices, and makes it if necessary.
// mount_use_path() returns an existing presentation by its path. The caller gets a reference and a
// use, which presentation_unuse() ends. Return NULL and set `error` on failure.
Presentation *mount_use (Mount *self, const gchar *choices, GError **error);
Presentation *mount_use_path (Mount *self, const gchar *path, GError **error);

// Report whether the mount serves a folder of titles, and whether `name` is the name of `title`, or
// the end of its path as gst-rtsp-server writes it in answers.
gboolean mount_has_titles (Mount *self);
gboolean mount_has_title (Mount *self, Title *title, const gchar *name);

// See titles_open().
Title *mount_open_title (Mount *self, const gchar *name, GError **error);

// Returns references to all presentations, the one of the path alone first. (transfer full)
GPtrArray *mount_dup_presentations (Mount *self);
