// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A thread that waits for the descriptors and the times of many owners, and calls them. What it
// calls must not block.
//
// An owner may be about to go while an event of it is on its way. So each owner goes like this: it
// calls loop_leave(), and keeps its structure until the loop calls `left`, which is the last call.
// loop_leave() may be called from any thread, also from a function that the loop calls. None of the
// owner's functions starts after it; one that runs meanwhile goes on.

#include <gio/gio.h>

#include "run/heap.h"

#define LOOP_NEVER G_MAXINT64
#define LOOP_NUMBERS 16 // of descriptors that one owner tells apart

typedef struct _Loop Loop;
typedef struct _LoopWatch LoopWatch;

typedef struct {
  const gchar *name; // of the thread; a literal
  // After events the thread sleeps for this long, in us, so that one wake takes those of many
  // owners. An event after a pause is taken at once.
  guint gather_us;
  guint gather_above; // only while it has more owners than this
  gsize scratch;      // bytes of loop_get_scratch()
} LoopSettings;

// The functions of an owner, which the thread calls.
typedef struct {
  // The descriptor `number` is ready: `events` of epoll. NULL if none is watched.
  void (*ready) (LoopWatch *watch, guint number, guint32 events);
  // The time of loop_set_due() has come; there is none from now on. `now`: ns, monotonic. NULL if
  // none is set.
  void (*due) (LoopWatch *watch, gint64 now);
  // The owner has left. NULL if it stays until the loop's end.
  void (*left) (LoopWatch *watch);
} LoopOps;

// An owner's place in a loop. Embed it in the owner. All fields are private.
struct _LoopWatch {
  const LoopOps *ops;
  Loop *loop;
  guint64 id;
  gint64 due;
  WeirHeapNode at; // in the loop's times
  gint leaving;    // atomic
};

// Starts the thread. Returns NULL and sets `error` if the system has no thread or descriptor left.
Loop *loop_new (const LoopSettings *settings, GError **error);

// Calls what was posted, ends the thread, and lets all owners leave that have not. Owners may call
// loop_leave() and loop_post() meanwhile, but not after it.
void loop_free (Loop *self);

// Calls `function` once in the thread, after the events that the thread has fetched, in the order
// of the calls. Call from any thread.
void loop_post (Loop *self, void (*function) (gpointer data), gpointer data);

// Lets an owner join. `loop` may be NULL, if it could not be made: nothing can be watched then.
// Call from any thread.
void loop_join (Loop *loop, LoopWatch *watch, const LoopOps *ops);

// The same, and watches the descriptor 0. Returns FALSE with errno if the system refuses; then the
// owner has not joined.
gboolean loop_join_fd (Loop *loop, LoopWatch *watch, const LoopOps *ops, gint fd, guint32 events);

// Ends that; see above. Does nothing if it was called before. Stop watching the owner's descriptors
// before, or close them.
void loop_leave (LoopWatch *watch);

// Watches a descriptor for these events of epoll; 0 stops watching it. `number` is less than
// LOOP_NUMBERS. Returns FALSE with errno if the system refuses. Call from any thread.
gboolean loop_watch (LoopWatch *watch, guint number, gint fd, guint32 events);

// Sets when `due` is called, in ns, monotonic; LOOP_NEVER: not at all. Does nothing after
// loop_leave(). Call from any thread.
void loop_set_due (LoopWatch *watch, gint64 due);

// Returns the next whole multiple of an interval after `now`, so that the ticks of all owners wake
// the thread together.
gint64 loop_next_tick (gint64 now, guint interval_ms);

// Memory for one call. For the thread only.
guint8 *loop_get_scratch (LoopWatch *watch);
