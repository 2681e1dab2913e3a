// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The thread that reads what all workers send. With more than a few sockets it sleeps for 1 ms
// after each round of reading, so that one wake serves the messages of many upstreams. The thread
// never ends.

#include <gio/gio.h>

// Bytes of the buffer that all sockets share for reading.
#define ISOLATED_LOOP_SCRATCH (128 * 1024)

// A watched socket, embedded in its owner's structure. The thread calls the functions.
typedef struct _IsolatedWatched IsolatedWatched;
struct _IsolatedWatched {
  gint fd;
  // The socket has data, or was closed. `scratch` has ISOLATED_LOOP_SCRATCH bytes.
  void (*ready) (IsolatedWatched *self, guint8 *scratch);
  void (*tick) (IsolatedWatched *self, gint64 now); // twice a second; ns, monotonic
};

// Watches a socket. Returns FALSE and sets `error` if the system has no thread or descriptor left.
// Call from the main thread only.
gboolean isolated_loop_add (IsolatedWatched *watched, GError **error);

// Ends that. Call from `ready` or `tick` of the same socket only, which may then free it.
void isolated_loop_remove (IsolatedWatched *watched);
