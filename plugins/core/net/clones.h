// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Sends one message to many readers by clones: the message is given to the kernel once, and a
// program at the network device makes a clone for each reader, with the reader's addresses, ports
// and numbers of RTP. What loads that program needs a library, so it stands beside core and comes
// in as these operations.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

// How a reader was served last: by clones, or why not.
typedef enum {
  WEIR_CLONES_SENT,
  WEIR_CLONES_UNFIT,     // TCP, IPv6, multicast, SRTP, no segmented sends, or options of the socket
  WEIR_CLONES_ALONE,     // no other reader behind its device gets the same packets
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
  // Added to the numbers of its packets: sequence number, picture id of VP8, timestamp.
  uint16_t seq_ahead, picture_ahead;
  uint32_t time_ahead;
  int error; // 0: the clone was sent; else a positive errno: it was dropped
} WeirCloneTarget;

static inline bool
weir_clone_is_plain (const WeirCloneTarget *target)
{
  return target->seq_ahead == 0 && target->picture_ahead == 0 && target->time_ahead == 0;
}

#define WEIR_CLONES_MAX 128 // most readers of one message

// Most bytes of a message, unless its packets are one, for readers whose numbers differ from the
// message's: the kernel copies them for each clone, into memory without a gap.
#define WEIR_CLONES_OWN_BYTES 30000

#define WEIR_CLONES_WIDE_ID 0x8000 // in WeirCloneMessage.picture_at: the id has 15 bits, not 7

// A message: packets of one length, except for the last one, which may be shorter.
typedef struct {
  const struct msghdr *header; // with `msg_iov`, and in `msg_control` UDP_SEGMENT or nothing
  size_t n_packets;            // at most 64
  uint64_t rtp;                // those that have numbers, a bit each
  const uint16_t *picture_at;  // where the picture id of each packet is, or 0; NULL: no ids
} WeirCloneMessage;

// Call all operations from any thread, except that a route's `release` comes last.
typedef struct {
  // Returns a number for the device over which clones reach the reader now, not 0. Returns 0 if
  // they do not: for example, because its neighbour's hardware address is not known.
  unsigned (*device) (WeirCloneRoute *route);

  // Returns why clones do not reach it; WEIR_CLONES_SENT: they do.
  WeirClones (*why_not) (WeirCloneRoute *route);

  // Sends a message to `n` readers of one device, as if it were sent from the socket `fd`. Those
  // with the message's own numbers come first. Returns how many of them, from the first on, it was
  // cloned for, and sets the error of each of these. It was not sent to the others. Does not block.
  size_t (*send) (const WeirCloneMessage *message, int fd, WeirCloneTarget *targets, size_t n);

  void (*release) (WeirCloneRoute *route);
} WeirCloner;
