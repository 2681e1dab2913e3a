// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Sends a burst of packets over UDP to one reader or to many.
//
// Cost is per send, not per packet. Measured on one core with 1200-byte packets and 500 readers, in
// ns of CPU per delivered packet: 780 with one message per packet, by sendto or by sendmmsg; with
// UDP_SEGMENT and a contiguous burst 200 at 4 packets a send, 102 at 8, 68 at 16 and 54 at 32. The
// system call takes from 0 to 20 % of that, depending on the machine. So packets are combined into
// messages first, and then the messages to readers that get the same bytes go out in one sendmmsg.
//
// A burst is cut into runs of packets of one size; only the last packet of a run may be shorter. A
// run of two or more packets is one message that the kernel (or the device) segments. If that is
// refused (EINVAL, EIO, EMSGSIZE, EOPNOTSUPP), the rest of the burst is sent as one message per
// packet. No packet is lost, and WeirSendResult.gso_error tells the caller, so that it can stop
// trying.
//
// For every reader, every settled packet is in exactly one counter of WeirSendResult.
//
// A sender belongs to one thread at a time. It allocates nothing, takes no lock and never blocks.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "net/address.h"
#include "net/burst.h"
#include "net/clones.h"
#include "net/drops.h"

// Bytes of the send buffer that all readers of a track share, as SO_SNDBUF is set. With the
// system's default of 208 KiB a fast line runs empty before the next burst fills the buffer again.
#define WEIR_SEND_BUFFER (1 << 20)

typedef enum {
  WEIR_GSO_AUTO, // segmented sends; pauses after a refusal
  WEIR_GSO_ON,   // segmented sends; tries again with the next burst after a refusal
  WEIR_GSO_OFF
} WeirGso;

// The system calls that a sender makes; tests substitute them.
typedef struct {
  ssize_t (*sendmsg) (int fd, const struct msghdr *msg, int flags);
  int (*sendmmsg) (int fd, struct mmsghdr *msgs, unsigned n, int flags);
} WeirSendOps;

typedef struct {
  uint64_t packets; // sent
  uint64_t bytes;
  uint64_t dropped[WEIR_N_DROPS];
  int gso_error; // 0, or the errno of a refused segmented send
  int error;     // 0, or the errno with which packets were last dropped
} WeirSendResult;

#define WEIR_SEGMENT_CLASSES 7 // sends of 1, 2 to 3, 4 to 7, 8 to 15, ... and 64 packets

typedef struct {
  uint64_t sends;     // messages sent
  uint64_t gso_sends; // messages that were segmented
  uint64_t fallbacks; // segmented messages that were refused
  uint64_t blocked;   // sends that found no room in the socket
  uint64_t triggers;  // messages that the kernel cloned
  uint64_t clones;    // clones sent
  uint64_t clones_dropped;
  uint64_t segments[WEIR_SEGMENT_CLASSES];
} WeirSendCounters;

#define WEIR_SEND_MESSAGES 64 // most messages in one system call

typedef struct {
  const WeirSendOps *ops;
  WeirSendCounters counters; // the caller may read and clear them
  WeirBurst burst;

  // Private. The messages of the burst, the same for all readers except the address.
  bool has_packets, has_singles; // laid out only when needed
  struct iovec packets[WEIR_STAGE_PACKETS];
  struct mmsghdr runs[WEIR_STAGE_PACKETS], singles[WEIR_STAGE_PACKETS];
  struct mmsghdr many[WEIR_SEND_MESSAGES];
  struct iovec run_iov[WEIR_STAGE_PACKETS];
  size_t run_first[WEIR_STAGE_PACKETS + 1]; // first packet of each run
  size_t n_runs;
  union {
    struct cmsghdr align;
    uint8_t bytes[CMSG_SPACE (sizeof (uint16_t))];
  } run_control[WEIR_STAGE_PACKETS];
} WeirSender;

// Initialises a sender. `ops` is NULL for the real system calls.
void weir_sender_init (WeirSender *sender, const WeirSendOps *ops);

// Sends one message, without waiting for room. `ops` is as above. Returns -1 and errno if it fails.
ssize_t weir_send_one (const WeirSendOps *ops, int fd, const struct msghdr *msg);

// Loads a burst. Its bytes stay the caller's, and may be changed between two sends.
void weir_sender_load (WeirSender *sender, const WeirBurst *burst);

// Returns one iovec per packet of the burst, owned by the sender and valid until the next load.
const struct iovec *weir_sender_packets (WeirSender *sender);

// Sends the packets of the burst from number `from` on to an address of the family of the socket
// `fd` (-1 if no socket reaches it: the packets are dropped). `gso` allows segmented sends. Adds to
// `result`. Returns the number of the first packet that is not settled: less than burst.n if the
// socket has no room now.
size_t weir_sender_send (WeirSender *sender, int fd, const WeirAddress *address, bool gso,
    size_t from, WeirSendResult *result);

// A reader of a burst for weir_sender_send_many().
typedef struct {
  const WeirAddress *address;
  size_t settled; // first packet that is not settled
  WeirSendResult result;
} WeirSendTarget;

// Sends the burst, segmented, to `n` readers of one socket with as few system calls as possible.
// Returns how many targets were served, at least one: fewer than `n` if the socket had no room for
// the last of them.
size_t weir_sender_send_many (WeirSender *sender, int fd, WeirSendTarget *targets, size_t n);

// Where the numbers of a burst's packets are, as in WeirCloneMessage.
typedef struct {
  uint64_t rtp;
  const uint16_t *picture_at;
} WeirBurstNumbers;

// Sends the burst by clones to `n` readers, at most WEIR_CLONES_MAX, with the routes and numbers of
// `clones`, as if it were sent from the socket `fd`. Those with the burst's own numbers come first.
// Returns true if all of them were sent the whole burst.
// Otherwise sets `targets`: the `settled` of one is less than burst.n if the rest of the burst
// cannot be cloned for it now. A clone that is dropped counts as WEIR_DROP_NO_BUFFERS, or
// WEIR_DROP_ERROR.
bool weir_sender_clone (WeirSender *sender, const WeirCloner *cloner, int fd,
    const WeirBurstNumbers *numbers, WeirCloneTarget *clones, WeirSendTarget *targets, size_t n);
