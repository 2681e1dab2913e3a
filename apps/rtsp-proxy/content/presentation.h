// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What one URL asks for: a chain of stages, the relay that it ends in, and what an outlet keeps
// ready for all of its readers, the media. Any thread may call what does not say otherwise.

#include "graph/graph.h"

typedef struct _Presentation Presentation;

typedef struct {
  // Its readers can't go on, for this reason.
  void (*close_readers) (Presentation *self, const gchar *reason, gpointer data);
  // Nobody has used it for the linger.
  void (*idle) (Presentation *self, gpointer data);
  // It has no media: one is to be prepared, in another thread, which tells of its end by
  // presentation_media_opened(). One that runs without readers has it, too, so that the first
  // reader finds a keyframe, and what the cache is to hold.
  void (*open_media) (Presentation *self, gpointer data);
  // Its media serves readers as another configuration says from now on.
  void (*configure_media) (Presentation *self, gpointer media, gpointer data);
} PresentationCallbacks; // on the main thread

// `path`: under which the library knows it. `query`: what the URL chose, or NULL. `stages`,
// `instance`: see graph_get(); one that is not 0 is a session of a stored title. `data` must
// outlive its running.
Presentation *presentation_new (Graph *graph, const gchar *path, const gchar *query,
    MountConfig *config, GPtrArray *stages, guint instance, const PresentationCallbacks *callbacks,
    gpointer data);
Presentation *presentation_ref (Presentation *self);
void presentation_unref (Presentation *self); // the last one: freed on the main thread

// Starts what it needs, if it is to run without readers too. Main thread.
void presentation_start (Presentation *self);

// Ends, and takes no more users. Main thread.
void presentation_stop (Presentation *self);

// Another configuration, maybe another chain. Where readers watch, it is started beside the old
// one, and taken at its next join point; if it gives nothing in time, the old one stays. Main
// thread.
void presentation_configure (Presentation *self, MountConfig *config, GPtrArray *stages);

// "idle", "starting", "up" or "down". Main thread.
const gchar *presentation_get_state_name (Presentation *self);

// Is a new chain being started beside the old one? And why the last one was not taken, or NULL; to
// be freed. Main thread.
gboolean presentation_is_switching (Presentation *self);
gchar *presentation_dup_problem (Presentation *self);

const gchar *presentation_get_path (Presentation *self);
const gchar *presentation_get_mount_path (Presentation *self);
guint presentation_get_instance (Presentation *self);
const gchar *presentation_get_query (Presentation *self);
const gchar *presentation_get_label (Presentation *self);  // as logs call it: "/cam?size=640x360"
MountConfig *presentation_dup_config (Presentation *self); // a reference
Relay *presentation_get_relay (Presentation *self);

// The end of its chain, and of the one that is being started beside it; NULL: there is none now.
// Main thread.
Node *presentation_get_node (Presentation *self);
Node *presentation_get_next_node (Presentation *self);

// A reader came (starts what is needed), a reader went (starts the linger).
void presentation_use (Presentation *self);
void presentation_unuse (Presentation *self);
guint presentation_n_users (Presentation *self);

typedef enum { PRESENTATION_READY, PRESENTATION_DOWN, PRESENTATION_STARTING } PresentationState;

// Is its media ready, so that nobody has to wait for it? Down: the last attempt failed, and the
// next is yet to come.
PresentationState presentation_ask (Presentation *self);

// Of a stored title: can somebody who comes now still get its beginning?
gboolean presentation_is_at_start (Presentation *self);

// Calls `told`, once, when it is not starting any more, or after start-timeout; maybe at once. With
// no lock held.
typedef void (*PresentationToldFunc) (gpointer data);
void presentation_wait (Presentation *self, PresentationToldFunc told, gpointer data);

// Names the media that new readers share; another one after readers had to be closed. NULL: it is
// not ready, and only one that is was asked for.
gchar *presentation_dup_media_key (Presentation *self, gboolean only_ready);

// The media is ready: keeps it until there is no more use for it, so that it never goes away under
// a reader that is just coming. `release` lets it go, on the main thread. FALSE: nobody is left who
// would want it, one is kept already, or readers want another by now.
gboolean presentation_keep_media (Presentation *self, gpointer media, GDestroyNotify release);

// Its media has been opened, and is kept if there is a use for it; or why it could not be.
void presentation_media_opened (Presentation *self, const gchar *problem);
