// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A mount plus the choices of a URL: a chain of stages, and the relay at its end, to which outlets
// add sinks. Call from any thread, unless the function says otherwise.

#include "graph/graph.h"
#include "mounts/choices.h"
#include "relay/tape_player.h"

typedef struct _Presentation Presentation;

typedef void (*PresentationDoneFunc) (gpointer data);

// Functions that a presentation calls on the main thread.
typedef struct {
  // Closes the presentation's readers, for a reason that is logged.
  void (*close_readers) (Presentation *self, const gchar *reason, gpointer data);
  // Called when no reader has used the presentation for the time `linger`.
  void (*idle) (Presentation *self, gpointer data);
  // Called when the presentation has got its tracks, lost its users, or got another configuration.
  void (*changed) (Presentation *self, gpointer data);
} PresentationCallbacks;

// Outlets publish the presentation under `path`. `query` has the choices of the URL; it may be
// NULL. For `stages` and `instance` see graph_get(); an instance other than 0 is a session of a
// stored title. `data` is passed to the callbacks, and must be valid until presentation_stop().
Presentation *presentation_new (Graph *graph, const gchar *path, const gchar *query,
    MountConfig *config, GPtrArray *stages, guint instance, const PresentationCallbacks *callbacks,
    gpointer data);
Presentation *presentation_ref (Presentation *self);
void presentation_unref (Presentation *self); // the main thread frees it
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Presentation, presentation_unref)

// Sets the count that the presentation's choices belong to. `counted`: the presentation itself is
// one of them, and leaves when it stops. Call before the presentation has other users.
void presentation_set_choices (Presentation *self, Choices *choices, gboolean counted);

// Counts in a stream with other layers than those that the URL without a choice gives. Returns
// FALSE and sets `error` if `max-presentations` choices run already. presentation_leave_choice()
// counts it out.
gboolean presentation_take_choice (Presentation *self, GError **error);
void presentation_leave_choice (Presentation *self);

// ---- stored titles that can be sought (presentation_title.c) ----

// A session plays from a place of the title, in ns. Its packets are kept for readers of their own
// if the upstream may be able to seek, which `may_seek` says. Call before the session has users.
void presentation_begin_at (Presentation *self, gint64 at, gboolean may_seek);
gint64 presentation_get_at (const Presentation *self);

// Reports whether the upstream of a session says how long the title is and from where it plays;
// sets `place` to that. Such a session is served by presentations of single readers, made with
// presentation_follow(). For these the same is reported of the session that they play.
gboolean presentation_get_place (Presentation *self, TitlePlace *place);

// Makes a presentation that of one reader of `session`, on which it takes over a use. Returns FALSE
// and sets `error` on failure. Call before the presentation has users.
gboolean presentation_follow (Presentation *self, Presentation *session, GError **error);

// Returns what plays for the one reader (transfer full), or NULL for other presentations.
TapePlayer *presentation_dup_player (Presentation *self);
gboolean presentation_follows (const Presentation *self);

// Lets the one reader play another session, on which it takes over a use, from its beginning; NULL:
// go on with the one before. See tape_player_begin().
void presentation_play (
    Presentation *self, Presentation *session, PresentationDoneFunc done, gpointer data);

// ---- further stages (presentation_derived.c) ----

// Makes a presentation of the same with the stage `stage` behind its chain, whose readers an outlet
// serves in another form than the mount's. It has the configuration of `self`, now and later, and
// stops with it. Returns NULL and sets `error` if there is no such stage. It ends with
// presentation_drop_derived(), on the main thread, before `self` is released.
Presentation *presentation_derive (Presentation *self, const gchar *stage,
    const PresentationCallbacks *callbacks, gpointer data, GError **error);
void presentation_drop_derived (Presentation *self, Presentation *derived);

// ---- running ----

// Starts the chain if it is configured to run without readers. Main thread only.
void presentation_start (Presentation *self);

// Stops the chain, and refuses readers from now on. Main thread only.
void presentation_stop (Presentation *self);

// Applies another configuration. If it gives another chain and readers watch, the new chain starts
// beside the old one and replaces it at a join point; if the new chain gives no media within
// `switch-timeout`, the old one stays. Main thread only.
void presentation_configure (Presentation *self, MountConfig *config, GPtrArray *stages);

// Returns "idle", "starting", "up" or "down". Main thread only.
const gchar *presentation_get_state_name (Presentation *self);

// Reports whether a new chain runs beside the old one. Main thread only.
gboolean presentation_is_switching (Presentation *self);

// Returns why the last new chain did not replace the old one (transfer full), or NULL. Main thread
// only.
gchar *presentation_dup_problem (Presentation *self);

const gchar *presentation_get_path (Presentation *self);
const gchar *presentation_get_mount_path (Presentation *self);
guint presentation_get_instance (Presentation *self);
const gchar *presentation_get_query (Presentation *self);
const gchar *presentation_get_label (Presentation *self);  // for the log: "/cam?size=640x360"
MountConfig *presentation_dup_config (Presentation *self); // (transfer full)
Relay *presentation_get_relay (Presentation *self);        // (transfer none)

// Reports whether readers can be behind the live edge.
gboolean presentation_has_cache (Presentation *self);

// Returns how often another upstream, or the slate, took over from one that had failed. Main thread
// only.
guint64 presentation_get_failovers (Presentation *self);

// Return the last node of the current chain, and of a new chain beside it; NULL if there is none.
// Main thread only.
Node *presentation_get_node (Presentation *self);
Node *presentation_get_next_node (Presentation *self);

// presentation_use() counts a reader in and starts the chain. presentation_unuse() counts it out;
// when the last one has left, the linger time begins.
void presentation_use (Presentation *self);
void presentation_unuse (Presentation *self);
guint presentation_n_users (Presentation *self);

// Ends a use, and drops a reference.
void presentation_leave (Presentation *self);

typedef enum { PRESENTATION_READY, PRESENTATION_DOWN, PRESENTATION_STARTING } PresentationState;

// Returns READY if the tracks are known and a packet came, DOWN if the last attempt has failed and
// the next one has not begun, or else STARTING. Sets `error`, which may be NULL, if it is DOWN:
// G_IO_ERROR_NOT_SUPPORTED if no attempt can succeed until the mount's clip is another, else
// G_IO_ERROR_BUSY.
PresentationState presentation_ask (Presentation *self, GError **error);

// What a reader is told of a presentation that is DOWN.
#define NO_MEDIA_PROBLEM "%s has no media at the moment"

// Reports whether a new reader of a session still gets the beginning of the stored title.
gboolean presentation_is_at_start (Presentation *self);

// Calls `done` once: at once if the state is not STARTING, else when it is no longer STARTING or
// after `start-timeout`. Call with no lock held.
void presentation_wait (Presentation *self, PresentationDoneFunc done, gpointer data);
