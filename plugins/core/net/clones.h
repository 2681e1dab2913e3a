// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Sends one message to many readers by clones: the message is given to the kernel once, and a
// program at the network device makes a clone for each reader, with the reader's addresses and
// ports. What loads that program needs a library, so it stands beside core and comes in as these
// operations.

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

// How a reader was served last: by clones, or why not.
typedef enum {
  WEIR_CLONES_SENT,
  WEIR_CLONES_UNFIT,     // TCP, IPv6, multicast, SRTP, no segmented sends, or options of the socket
  WEIR_CLONES_ALONE,     // no other reader behind its device gets the same bytes
  WEIR_CLONES_UNKNOWN,   // its route is being looked up
  WEIR_CLONES_ROUTE,     // no route, or none that is plain
  WEIR_CLONES_NEIGHBOUR, // the hardware address of the next hop is not known
  WEIR_CLONES_DEVICE,    // the device has no Ethernet headers, is down, or refused the program
  WEIR_CLONES_SEGMENTS,  // the device does not segment UDP messages
  WEIR_CLONES_RULES,     // clones would go round rules of the system
  WEIR_CLONES_FULL,      // a queue dropped a clone within the last second
  WEIR_CLONES_FAILED,    // the message was held up, or all slots were in use
  WEIR_N_CLONES
} WeirClones;

// Returns the name in statistics, such as "clones" or "alone"; "unknown" for other values.
const char *weir_clones_name (WeirClones clones);

// How one reader is reached.
typedef struct weir_clone_route WeirCloneRoute;

typedef struct {
  WeirCloneRoute *route;
  int error; // 0: the clone was sent; else a positive errno: it was dropped
} WeirCloneTarget;

#define WEIR_CLONES_MAX 128 // most readers of one message

// Call all operations from any thread, except that a route's `release` comes last.
typedef struct {
  // Returns a number for the device over which clones reach the reader now, not 0. Returns 0 if
  // they do not: for example, because its neighbour's hardware address is not known.
  unsigned (*device) (WeirCloneRoute *route);

  // Returns why clones do not reach it; WEIR_CLONES_SENT: they do.
  WeirClones (*why_not) (WeirCloneRoute *route);

  // Sends a message of `n_packets` (its `msg_iov`, and its `msg_control` with UDP_SEGMENT or
  // nothing) to `n` readers of one device, as if it were sent from the socket `fd`. Returns how
  // many of them, from the first on, it was cloned for, and sets the error of each of these. It was
  // not sent to the others. Does not block.
  size_t (*send) (
      const struct msghdr *message, size_t n_packets, int fd, WeirCloneTarget *targets, size_t n);

  void (*release) (WeirCloneRoute *route);
} WeirCloner;
