// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The thread that runs all RTSP clients: one epoll for their sockets, and one tick for their
// timers. After each round of reading it sleeps for a while, 2 ms by default, so that it wakes at
// most 500 times a second however many packets arrive. The thread never ends.

#include <gio/gio.h>

// Bytes of the buffer that all clients share for reading.
#define RTSP_LOOP_SCRATCH (256 * 1024)
// Interval of `tick`, in ms.
#define RTSP_LOOP_TICK_MS 100

// A watched socket, embedded in its owner's structure.
typedef struct _RtspWatched RtspWatched;
struct _RtspWatched {
  gint fd;
  // The socket has data or room, or has failed. `scratch` has RTSP_LOOP_SCRATCH bytes. May retire
  // and free `self`.
  void (*ready) (RtspWatched *self, guint8 *scratch);
};

// A client's timer, embedded in its structure.
typedef struct _RtspTicked RtspTicked;
struct _RtspTicked {
  void (*tick) (RtspTicked *self, gint64 now); // ns, monotonic; may free `self`
  GList link;                                  // private
};

// Starts the thread, unless it runs. Returns FALSE and an error if the system has no descriptor or
// thread left. Call from any thread.
gboolean rtsp_loop_start (GError **error);

// Sets how many us the thread sleeps between rounds; 0: not at all. Call before it starts.
void rtsp_loop_set_round (guint us);

// Calls `function` once in the thread, in the order of the calls. Call from any thread, after
// rtsp_loop_start() succeeded.
void rtsp_loop_invoke (GSourceFunc function, gpointer data);

// ---- call from the thread only ----

// Watches a socket for data, and for room if `writing`. Returns FALSE if the system refuses.
gboolean rtsp_loop_watch (RtspWatched *watched, gboolean writing);
// Changes whether the socket is also watched for room.
void rtsp_loop_set_writing (RtspWatched *watched, gboolean writing);
// Call before the socket is closed. `ready` is not called again.
void rtsp_loop_unwatch (RtspWatched *watched);

void rtsp_loop_add_tick (RtspTicked *ticked);
void rtsp_loop_remove_tick (RtspTicked *ticked);
