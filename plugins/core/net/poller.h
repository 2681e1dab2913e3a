// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One thread for the whole process that waits for room in sockets. The first weir_poller_add()
// starts it; it never ends. Call all functions from any thread.

#include <stdbool.h>

// A socket to watch, embedded in its owner's structure. The thread calls `writable` once for each
// weir_poller_arm(), when there is room or the socket has failed, and `free` after
// weir_poller_retire().
typedef struct weir_polled {
  int fd;
  void (*writable) (struct weir_polled *polled);
  void (*free) (struct weir_polled *polled);
  struct weir_polled *next_retired; // private
} WeirPolled;

// Add a socket, and ask for the next call of `writable`. Return 0 or a negative errno. `polled`
// must stay valid until its `free` is called.
int weir_poller_add (WeirPolled *polled);
int weir_poller_arm (WeirPolled *polled);

// Closes the descriptor and stops watching. A call of `writable` may still be running; `free` comes
// after it.
void weir_poller_retire (WeirPolled *polled);

// Reports whether the caller is the poller's thread.
bool weir_poller_is_here (void);
