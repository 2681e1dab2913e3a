// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Sends a batch to many readers over UDP.
//
// What it costs: the price is per send, not per packet. Measured on one core, 1200-byte packets,
// 500 readers, in ns of CPU per delivered packet: 780 for one message a packet, whether by sendto
// or by sendmmsg; with UDP_SEGMENT and the burst contiguous 200 at 4 packets a send, 102 at 8, 68
// at 16 and 54 at 32. System calls are cheap beside the way through the IP stack, so putting
// several messages into one sendmmsg gains nothing by itself; making several packets one message
// does.
//
// A batch is therefore cut into runs: packets of one size, the last of which may be shorter. A run
// of two or more is one message that the kernel (or the device) segments. Where that is not
// possible (EINVAL, EIO, EMSGSIZE, EOPNOTSUPP) the sender goes over to one message a packet, for
// good, for that address family, beginning with the very run that failed: a reader loses nothing.
//
// For every reader, every packet ends in exactly one of WeirSendResult's counters.
//
// A sender belongs to one thread. It allocates nothing and takes no lock.

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "batch.h"
#include "readers.h"

typedef enum {
  WEIR_GSO_AUTO, // segmented sends until one fails
  WEIR_GSO_ON,   // tries again with the next batch after one failed
  WEIR_GSO_OFF
} WeirGso;

// The system as the sender sees it. Tests put their own here.
typedef struct {
  ssize_t (*sendmsg) (int fd, const struct msghdr *msg, int flags);
  int (*sendmmsg) (int fd, struct mmsghdr *msgs, unsigned n, int flags);
  int (*poll) (struct pollfd *fds, nfds_t n, int timeout_ms);
  int64_t (*now_ns) (void); // monotonic; asked only around a poll
} WeirSendOps;

// One line of the snapshot over which a pass goes.
typedef struct {
  struct sockaddr_storage address; // in the family of fd: IPv4-mapped where an IPv6 socket serves
  socklen_t address_len;
  int fd;         // -1 if there is no socket that reaches it
  uint32_t times; // how often every packet is due
  WeirReaderHandle handle;
} WeirSendTarget;

typedef struct {
  uint64_t packets;
  uint64_t bytes;
  uint64_t dropped[WEIR_N_DROPS];
} WeirSendResult;

typedef struct {
  const WeirSendOps *ops;
  WeirGso gso;
  bool no_gso[2]; // IPv4, IPv6: segmented sends failed
  // Set from any thread: the rest of the pass is dropped as flushed.
  atomic_bool cancelled;

  uint64_t n_sends;     // messages sent
  uint64_t n_gso_sends; // of those, segmented
  uint64_t n_fallbacks; // segmented sends that failed
  uint64_t n_waits;     // times it waited for room in the socket

  // The messages of the batch in hand, for all readers alike but for the address. Private.
  struct mmsghdr runs[WEIR_BATCH_PACKETS], singles[WEIR_BATCH_PACKETS];
  struct iovec run_iov[WEIR_BATCH_PACKETS], single_iov[WEIR_BATCH_PACKETS];
  size_t run_first[WEIR_BATCH_PACKETS + 1]; // the first packet of each run
  size_t n_runs;
  union {
    struct cmsghdr align;
    uint8_t bytes[CMSG_SPACE (sizeof (uint16_t))];
  } run_control[WEIR_BATCH_PACKETS];
} WeirSender;

// `ops` NULL is the system itself.
void weir_sender_init (WeirSender *sender, WeirGso gso, const WeirSendOps *ops);

// Changing the mode forgets that segmented sends failed.
void weir_sender_set_gso (WeirSender *sender, WeirGso gso);

// Sends the batch to all targets, beginning with targets[start % n] and going round, so that an
// owner who moves `start` on leaves no reader always last. The pass waits `budget_ns` at most, in
// all, for room in a socket. results[i] is set for targets[i]: packets sent plus packets dropped
// make batch->n * targets[i].times.
void weir_send_pass (WeirSender *sender, const WeirBatch *batch, const WeirSendTarget *targets,
    size_t n, size_t start, int64_t budget_ns, WeirSendResult *results);
