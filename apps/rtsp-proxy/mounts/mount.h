// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A path that the proxy serves, and its presentations: one for the path alone, and one for each
// choice that a URL makes. Main thread only, but for what says otherwise.

#include <gst/rtsp-server/rtsp-server.h>

#include "content/presentation.h"
#include "content/titles.h"
#include "text/demand.h"

typedef struct _Mount Mount;

// How presentations are served. Any thread may call what does not say otherwise; a mount's lock may
// be held.
typedef struct {
  // It can be asked for under its path, from now on or no longer.
  void (*publish) (Presentation *presentation, gpointer data);
  void (*withdraw) (const gchar *path, gpointer data);
  // See PresentationCallbacks. Main thread.
  void (*open) (Presentation *presentation, gpointer data);
  void (*configure) (Presentation *presentation, gpointer media, gpointer data);
  void (*close_readers) (Presentation *presentation, const gchar *reason, gpointer data);
} MountOutlet;

// What mounts of one server share.
typedef struct {
  Graph *graph;
  GstRTSPMountPoints *points; // of titles
  GstRTSPThreadPool *threads; //
  const MountOutlet *outlet;
  gpointer data; // the outlet's
} MountContext;

// `context` must outlive its running. NULL and an error if its stages can't be.
Mount *mount_new (const MountContext *context, MountConfig *config, GError **error);

// Counted. Any thread.
Mount *mount_ref (Mount *self);
void mount_unref (Mount *self);

// Another configuration for the same path. Readers stay where they can; see
// presentation_configure(). FALSE and an error if its stages can't be: then nothing has changed.
gboolean mount_configure (Mount *self, MountConfig *config, GError **error);

const gchar *mount_get_path (Mount *self);         // any thread
const MountConfig *mount_get_config (Mount *self); // valid until it is configured again

// Of a stored title, whose readers share sessions of its upstream: those that run now, and ever who
// asked for it and shared one, or needed another.
typedef struct {
  guint running;
  guint64 hits, misses;
} MountSessions;

void mount_get_sessions (Mount *self, MountSessions *sessions); // any thread

// Of the default presentation. A reference. Any thread.
Presentation *mount_dup_main (Mount *self);

// That of the default presentation; see presentation_get_state_name().
const gchar *mount_get_state_name (Mount *self);

// What readers notice when it is configured so, in a sentence; to be freed.
gchar *mount_dup_effect (Mount *self, const MountConfig *to);

// Starts what is to run without readers too.
void mount_start (Mount *self);

// Ends all its presentations and takes no more readers.
void mount_stop (Mount *self);

// ---- what is asked for; any thread ----

// Does it offer that? What its stages are to choose (the demand's, or NULL), and the path under
// which the presentation is known, or would be (to be freed; NULL: each who asks has another).
// Starts nothing. FALSE and an error if not.
gboolean mount_resolve (
    Mount *self, const Demand *demand, const gchar **choices, gchar **path, GError **error);

// Is there one of this path, as "/cam/=5f1c03aa", now?
gboolean mount_has_path (Mount *self, const gchar *path);

// The presentation of these choices, which is made if it is not there; or of this path. A
// reference, and a use: presentation_unuse() it as well. NULL and an error.
Presentation *mount_use (Mount *self, const gchar *choices, GError **error);
Presentation *mount_use_path (Mount *self, const gchar *path, GError **error);

// Does it serve the titles of a folder? And is that the one of this name, or of its path?
gboolean mount_has_titles (Mount *self);
gboolean mount_has_title (Mount *self, Title *title, const gchar *name);

// See titles_open().
Title *mount_open_title (Mount *self, const gchar *name, GError **error);

// References to all, the default one first; to be freed with g_ptr_array_unref().
GPtrArray *mount_dup_presentations (Mount *self);
