// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Sends a burst of packets over UDP, to one reader or to many.
//
// What it costs: the price is per send, not per packet. Measured on one core, 1200-byte packets,
// 500 readers, in ns of CPU per delivered packet: 780 for one message a packet, whether by sendto
// or by sendmmsg; with UDP_SEGMENT and the burst contiguous 200 at 4 packets a send, 102 at 8, 68
// at 16 and 54 at 32. What a system call costs beside the way through the IP stack differs between
// machines, from nothing to a fifth of it. So several packets are made one message first, and then
// the messages to readers who get the same bytes go out in one sendmmsg.
//
// A burst is therefore cut into runs: packets of one size, the last of which may be shorter. A run
// of two or more is one message that the kernel (or the device) segments. Where that is refused
// (EINVAL, EIO, EMSGSIZE, EOPNOTSUPP) what is left of the burst goes as one message a packet: a
// reader loses nothing by it, and the caller is told, so as not to try again.
//
// For every reader, every packet that is settled is in exactly one of WeirSendResult's counters.
//
// A sender belongs to one thread at a time. It allocates nothing, takes no lock and never waits.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "net/address.h"
#include "net/burst.h"
#include "net/drops.h"

typedef enum {
  WEIR_GSO_AUTO, // segmented sends; after one failed, none for a while
  WEIR_GSO_ON,   // tries again with the next burst after one failed
  WEIR_GSO_OFF
} WeirGso;

// The system as the sender sees it. Tests put their own here.
typedef struct {
  ssize_t (*sendmsg) (int fd, const struct msghdr *msg, int flags);
  int (*sendmmsg) (int fd, struct mmsghdr *msgs, unsigned n, int flags);
} WeirSendOps;

typedef struct {
  uint64_t packets; // sent
  uint64_t bytes;
  uint64_t dropped[WEIR_N_DROPS];
  int gso_error; // 0, or the errno with which a segmented send was refused
  int error;     // 0, or the errno with which packets were dropped last
} WeirSendResult;

#define WEIR_SEGMENT_CLASSES 7 // sends of 1, 2 to 3, 4 to 7, ... 32 to 63, and 64 packets

typedef struct {
  uint64_t sends;     // messages sent
  uint64_t gso_sends; // of those, segmented
  uint64_t fallbacks; // segmented sends that were refused
  uint64_t blocked;   // times that a socket had no room
  uint64_t segments[WEIR_SEGMENT_CLASSES];
} WeirSendCounters;

#define WEIR_SEND_MESSAGES 64 // that one system call is given

typedef struct {
  const WeirSendOps *ops;
  WeirSendCounters counters; // the caller's to read and to clear
  WeirBurst burst;

  // The messages of the burst, for all readers alike but for the address. Private.
  bool has_packets, has_singles; // these are laid out only where somebody needs them
  struct iovec packets[WEIR_STAGE_PACKETS];
  struct mmsghdr runs[WEIR_STAGE_PACKETS], singles[WEIR_STAGE_PACKETS];
  struct mmsghdr many[WEIR_SEND_MESSAGES];
  struct iovec run_iov[WEIR_STAGE_PACKETS];
  size_t run_first[WEIR_STAGE_PACKETS + 1]; // the first packet of each run
  size_t n_runs;
  union {
    struct cmsghdr align;
    uint8_t bytes[CMSG_SPACE (sizeof (uint16_t))];
  } run_control[WEIR_STAGE_PACKETS];
} WeirSender;

// `ops` NULL is the system itself.
void weir_sender_init (WeirSender *sender, const WeirSendOps *ops);

// Takes a burst in hand. Its bytes stay the caller's, who may change them between two sends.
void weir_sender_load (WeirSender *sender, const WeirBurst *burst);

// The packets of the burst, one each.
const struct iovec *weir_sender_packets (WeirSender *sender);

// Sends the packets of the burst from number `from` on, to an address in the family of the socket
// `fd` (-1: there is none that reaches it). Adds what it did to `result` and returns the number of
// the first packet that is not settled: less than burst.n if the socket has no room now.
size_t weir_sender_send (WeirSender *sender, int fd, const WeirAddress *address, bool gso,
    size_t from, WeirSendResult *result);

// One of several readers of a burst.
typedef struct {
  const WeirAddress *address;
  size_t settled; // the first packet that is not
  WeirSendResult result;
} WeirSendTarget;

// Sends the burst, segmented, to readers of one socket with as few system calls as there can be.
// Returns how many of them were served, at least one: fewer than `n` after one for whom the socket
// has no room.
size_t weir_sender_send_many (WeirSender *sender, int fd, WeirSendTarget *targets, size_t n);
