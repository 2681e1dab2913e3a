// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A path that the proxy serves, with its presentations: the main one for the path alone, and one
// for each set of choices that URLs make. Call from the main thread only, unless the function says
// otherwise.

#include "broadcast/live_broadcast.h"
#include "mounts/presentation.h"
#include "mounts/titles.h"
#include "text/demand.h"

typedef struct _Mount Mount;

// Functions of the outlet that serves the presentations. They are called from any thread, possibly
// with a mount's lock held, unless a comment says otherwise.
typedef struct {
  // Lets clients request the presentation by its path; `withdraw` ends that.
  void (*publish) (Presentation *presentation, gpointer data);
  void (*withdraw) (const gchar *path, gpointer data);
  // See PresentationCallbacks. Called on the main thread.
  void (*changed) (Presentation *presentation, gpointer data);
} MountOutlet;

// Closes the readers of a presentation, see PresentationCallbacks.
typedef void (*CloseReadersFunc) (Presentation *presentation, const gchar *reason, gpointer data);

// Shared by the mounts of a server.
typedef struct {
  Graph *graph;
  const MountOutlet *outlet;
  gpointer data; // the outlet's
  const TitleOutlet *title_outlet;
  GObject *title_data;            // the title outlet's
  CloseReadersFunc close_readers; // of all outlets
  gpointer close_data;
  gboolean keeps_groups; // the presentations' relays, for sinks with `from_join`
} MountContext;

// Returns NULL and sets `error` if the mount's stages cannot be made. `context` must be valid until
// mount_stop().
Mount *mount_new (const MountContext *context, MountConfig *config, GError **error);

// Reference counting. Call from any thread.
Mount *mount_ref (Mount *self);
void mount_unref (Mount *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Mount, mount_unref)

// Changes the configuration; the path must be the same. Readers stay if possible, see
// presentation_configure(). If the new stages cannot be made, returns FALSE, sets `error` and
// changes nothing.
gboolean mount_configure (Mount *self, MountConfig *config, GError **error);

const gchar *mount_get_path (Mount *self);         // call from any thread
const MountConfig *mount_get_config (Mount *self); // valid until mount_configure()
MountConfig *mount_dup_config (Mount *self);       // (transfer full); call from any thread

// Returns the path with variables that made the mount, or NULL. Call from any thread.
const gchar *mount_get_pattern (Mount *self);

// Notes at `now` (ns) whether anybody uses the mount. Returns for how long nobody has (ns).
gint64 mount_note_use (Mount *self, gboolean used, gint64 now);

// Counts of a mount with the key `interval`: its upstream plays a stored title from the beginning
// in sessions that readers share. `running` sessions exist now; since the start, `hits` requests
// joined a session and `misses` requests started one.
typedef struct {
  guint running;
  guint64 hits, misses;
} MountSessions;

void mount_get_sessions (Mount *self, MountSessions *sessions); // call from any thread

// Returns the main presentation. Call from any thread. (transfer full)
Presentation *mount_dup_main (Mount *self);

// Returns the state of the main presentation; see presentation_get_state_name().
const gchar *mount_get_state_name (Mount *self);

// Returns a sentence that says how mount_configure() with `to` would affect readers. (transfer
// full)
gchar *mount_dup_effect (Mount *self, const MountConfig *to);

// Starts the main presentation if the mount has `on-demand: no`.
void mount_start (Mount *self);

// Stops all presentations and accepts no more readers.
void mount_stop (Mount *self);

// ---- requests; call from any thread ----

// Checks whether the mount offers the demand; starts nothing. Returns FALSE and sets `error` if it
// does not. Otherwise sets `choices` to the choices for its stages (owned by `demand`; may be
// NULL), and `path` to the path of the presentation, which need not exist (transfer full). `path`
// is NULL if the reader gets a session of a stored title.
gboolean mount_resolve (
    Mount *self, const Demand *demand, const gchar **choices, gchar **path, GError **error);

// Reports whether a presentation with this path, such as "/cam/=5f1c03aa", exists now.
gboolean mount_has_path (Mount *self, const gchar *path);

// mount_use() returns the presentation with these choices, and makes it if necessary.
// mount_use_path() returns the existing presentation with this path. The caller gets a reference,
// and a use, which presentation_unuse() ends. Both return NULL and set `error` on failure.
Presentation *mount_use (Mount *self, const gchar *choices, GError **error);
Presentation *mount_use_path (Mount *self, const gchar *path, GError **error);

// Return a session that plays the stored title from `at` (ns), and a presentation for one reader of
// a session of which presentation_get_place() is TRUE. The caller gets a reference, and a use. Both
// return NULL and set `error` on failure.
Presentation *mount_use_at (Mount *self, gint64 at, GError **error);
Presentation *mount_follow (Mount *self, Presentation *session, GError **error);

// The upstream has played from another place than it was asked for: further sessions offer no
// seeks.
void mount_note_unsought (Mount *self);

// Reports whether the mount is down because this machine lacks something for it. Each path below it
// is then taken for a title, and nothing of it can be used. Readers are told the text.
#define MOUNT_LACKS_PROBLEM "%s is down; the log of the proxy says why"
gboolean mount_lacks (Mount *self);

// Reports whether the mount serves a folder of titles.
gboolean mount_has_titles (Mount *self);

// Reports whether `title` is a title of this mount, and `name` is its name, or the end of its path
// as gst-rtsp-server writes it in answers.
gboolean mount_has_title (Mount *self, Title *title, const gchar *name);

// Returns the mount's store of titles, or NULL. (transfer full)
Store *mount_dup_store (Mount *self);

// Return the broadcast of the mount's titles or of its stream, or NULL. (transfer full)
Broadcast *mount_dup_broadcast (Mount *self);
LiveBroadcast *mount_dup_live_broadcast (Mount *self);

// See titles_open().
Title *mount_open_title (Mount *self, const gchar *name, GError **error);

// Returns references to all presentations, the main one first. (transfer full)
GPtrArray *mount_dup_presentations (Mount *self);
