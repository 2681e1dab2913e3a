// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Opens UDP sockets to receive media, and receives from them in batches. The kernel stamps each
// datagram with its time of arrival, and may merge datagrams of one sender (UDP_GRO).

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "net/address.h"
#include "net/burst.h"

// Opens a socket that is bound to `address`: an address of this host, 0.0.0.0 or [::], or a
// multicast group, which is joined on the interface with the index `iface` (0: by the routes). The
// port may be 0. Datagrams of one sender are merged where the kernel can, unless `gro` is false.
// `buffer` is as for weir_udp_set_buffer(). Returns the descriptor or a negative errno.
int weir_udp_open (const WeirAddress *address, unsigned iface, size_t buffer, bool gro);

// Opens two sockets on an even port and the next one, for RTP and RTCP. The port of `address` is
// ignored. Returns the even port, or a negative errno.
int weir_udp_open_pair (
    const WeirAddress *address, unsigned iface, size_t buffer, bool gro, int fds[2]);

// Makes the receive buffer at least `bytes` large, as the kernel accounts them: about 2300 for a
// datagram of 1500 bytes. Beyond net.core.rmem_max it needs CAP_NET_ADMIN. Returns the size.
size_t weir_udp_set_buffer (int fd, size_t bytes);

// Returns the buffer, as the kernel accounts it, in which so many datagrams with so many bytes of
// payload find room, at least.
uint64_t weir_udp_buffer_for (uint64_t bytes, uint64_t datagrams);

// Returns a count of datagrams that the kernel dropped on receiving; it wraps.
uint32_t weir_udp_drops (int fd);

// Sends a datagram; never waits. Maps an IPv4 address for an IPv6 socket. Returns 0 or a negative
// errno.
int weir_udp_send (int fd, const WeirAddress *to, const void *data, size_t len);

// The system call that a receiver makes; tests substitute it.
typedef struct {
  int (*recvmmsg) (int fd, struct mmsghdr *msgs, unsigned n, int flags, struct timespec *timeout);
} WeirReceiveOps;

#define WEIR_RECEIVE_MESSAGES 8

// A message: a datagram, or several of one sender that the kernel merged.
typedef struct {
  uint8_t *data;
  size_t len;
  size_t segment; // length of each datagram but the last, which may be shorter
  bool truncated;
  bool from_known;
  WeirAddress from;
  int64_t unix_ns; // time of arrival, CLOCK_REALTIME; 0: not known
  bool drops_known;
  uint32_t drops; // as weir_udp_drops(), when the message was queued
} WeirMessage;

typedef struct {
  const WeirReceiveOps *ops;
  WeirMessage messages[WEIR_RECEIVE_MESSAGES];
  // Private.
  uint8_t *bytes;
  struct mmsghdr headers[WEIR_RECEIVE_MESSAGES];
  struct iovec iov[WEIR_RECEIVE_MESSAGES];
  struct sockaddr_storage names[WEIR_RECEIVE_MESSAGES];
  union {
    struct cmsghdr align;
    uint8_t bytes[128];
  } control[WEIR_RECEIVE_MESSAGES];
} WeirReceiver;

// Initialises a receiver, for one thread at a time. `ops` is NULL for the real system call. Returns
// 0 or -ENOMEM. Free it with weir_receiver_clear().
int weir_receiver_init (WeirReceiver *self, const WeirReceiveOps *ops);
void weir_receiver_clear (WeirReceiver *self);

// Receives the datagrams that wait in a socket into `messages`; never waits. The bytes are valid
// until the next call. Returns the number of messages, less than WEIR_RECEIVE_MESSAGES if no more
// wait; 0 if none do; or a negative errno.
int weir_receiver_fill (WeirReceiver *self, int fd);

// Returns when a message arrived, on CLOCK_MONOTONIC, which is `unix_offset_ns` behind
// CLOCK_REALTIME. It is `now_ns` if that is not known, or makes no sense as the clock was set.
int64_t weir_message_arrival (const WeirMessage *message, int64_t unix_offset_ns, int64_t now_ns);
