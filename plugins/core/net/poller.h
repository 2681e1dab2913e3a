// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One thread for the whole process that waits for room in sockets. It is started by the first that
// asks, and stays.

#include <stdbool.h>

// Embedded in what is watched. `writable` is called from the thread once for each
// weir_poller_arm(), when there is room, or nothing more to wait for as the socket has failed.
// `free` is called from there after weir_poller_retire().
typedef struct weir_polled {
  int fd;
  void (*writable) (struct weir_polled *polled);
  void (*free) (struct weir_polled *polled);
  struct weir_polled *next_retired; // private
} WeirPolled;

// 0 or a negative errno.
int weir_poller_add (WeirPolled *polled);
int weir_poller_arm (WeirPolled *polled);

// Closes the descriptor; nothing is armed any more. A call of `writable` may still be running, and
// `free` comes when it is over.
void weir_poller_retire (WeirPolled *polled);

// Whether the caller is the thread.
bool weir_poller_is_here (void);
