// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What happens to streams, for who wants to be told: the API, and hooks. The newest events are
// kept. This is the one place where events are made. Call from any thread, unless a function says
// otherwise; nothing here blocks.

#include <glib.h>

#define EVENTS_KEPT 1024

typedef enum {
  EVENT_UP,     // a mount has media
  EVENT_DOWN,   // it has none any more
  EVENT_READER, // a reader plays
  EVENT_READER_LEFT,
  EVENT_PUBLISH, // a client publishes to a mount
  EVENT_PUBLISH_END,
  EVENT_RECORD,      // a file of a recording begins
  EVENT_RECORD_DONE, // it is complete
} EventKind;

// Immutable and reference counted (g_atomic_rc_box).
typedef struct {
  guint64 number; // each is larger than that of the one before, also after a restart
  EventKind kind;
  gchar *mount; // its path
  gchar *json;  // an object with number, time, event, mount, and what belongs to the kind
} Event;

// The names of the kinds, such as "reader-left". (transfer none)
const gchar *event_get_name (EventKind kind);

void event_unref (Event *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Event, event_unref)

// Adds an event. Pairs of a name and a text follow, and NULL; a pair whose text is NULL is left
// out.
void events_add (EventKind kind, const gchar *mount, ...) G_GNUC_NULL_TERMINATED;

// Returns the oldest kept event whose number is above `number`, or NULL if there is none yet.
// `*lost` says whether others before it are not kept, or `number` is none of this or an earlier
// run. (transfer full)
Event *events_next (guint64 number, gboolean *lost);

// Returns the number of the newest event, or the one below that of the first.
guint64 events_get_newest (void);

typedef struct _EventsWatch EventsWatch;

// Has `added` called on the main thread soon after events were added, once for several. Call both
// from the main thread; a watch may be removed in `added`, also another one.
EventsWatch *events_watch_new (void (*added) (gpointer data), gpointer data);
void events_watch_free (EventsWatch *self);
