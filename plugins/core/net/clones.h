// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Sends one message to many readers by clones: the message is given to the kernel once, and a
// program at the network device makes a clone for each reader, with the reader's addresses and
// ports. What loads that program needs a library, so it stands beside core and comes in as these
// operations.

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

// How one reader is reached.
typedef struct weir_clone_route WeirCloneRoute;

typedef struct {
  WeirCloneRoute *route;
  int error; // 0: the clone was sent; else a positive errno: it was dropped
} WeirCloneTarget;

#define WEIR_CLONES_MAX 64 // most readers of one message

// Call all operations from any thread, except that a route's `release` comes last.
typedef struct {
  // Returns a number for the device over which clones reach the reader now, not 0. Returns 0 if
  // they do not: for example, because its neighbour's hardware address is not known.
  unsigned (*device) (WeirCloneRoute *route);

  // Sends a message of `n_packets` (its `msg_iov`, and its `msg_control` with UDP_SEGMENT or
  // nothing) to `n` readers of one device, as if it were sent from the socket `fd`. Returns how
  // many of them, from the first on, it was cloned for, and sets the error of each of these. It was
  // not sent to the others. Does not block.
  size_t (*send) (
      const struct msghdr *message, size_t n_packets, int fd, WeirCloneTarget *targets, size_t n);

  void (*release) (WeirCloneRoute *route);
} WeirCloner;
