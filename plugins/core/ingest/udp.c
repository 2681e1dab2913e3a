// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ingest/udp.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_MAX 65536 // bytes; the kernel merges no more
#define PAIR_TRIES 64
// A datagram was in a buffer for no longer.
#define MOST_WAITING_NS INT64_C (10000000000)
// The kernel's memory for a datagram is at most so much and half as much again as the datagram.
#define OVERHEAD 800

// ---- sockets ----

static bool
set_on (int fd, int level, int option)
{
  int on = 1;

  return setsockopt (fd, level, option, &on, sizeof on) == 0;
}

// A group that another socket of this host joined does not reach this socket by that.
static int
join (int fd, const WeirAddress *group, unsigned iface)
{
  int off = 0, result;

  if (group->any.sa_family == AF_INET6) {
    struct ipv6_mreq request = { .ipv6mr_multiaddr = group->v6.sin6_addr,
      .ipv6mr_interface = iface ? iface : group->v6.sin6_scope_id };

    result = setsockopt (fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &request, sizeof request);
    setsockopt (fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, &off, sizeof off);
  } else {
    struct ip_mreqn request = { .imr_multiaddr = group->v4.sin_addr, .imr_ifindex = (int) iface };

    result = setsockopt (fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request);
    setsockopt (fd, IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof off);
  }
  return result;
}

static int
prepare (int fd, const WeirAddress *address, unsigned iface, size_t buffer, bool gro)
{
  bool group = weir_address_is_multicast (address);

  set_on (fd, SOL_SOCKET, SO_TIMESTAMPNS);
  set_on (fd, SOL_SOCKET, SO_RXQ_OVFL);
  if (gro)
    set_on (fd, SOL_UDP, UDP_GRO);
  weir_udp_set_buffer (fd, buffer);
  if (group && !set_on (fd, SOL_SOCKET, SO_REUSEADDR)) // others may listen to it here
    return -1;
  if (bind (fd, &address->any, weir_address_len (address)) < 0)
    return -1;
  return group ? join (fd, address, iface) : 0;
}

int
weir_udp_open (const WeirAddress *address, unsigned iface, size_t buffer, bool gro)
{
  int fd = socket (address->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int error;

  if (fd < 0)
    return -errno;
  if (prepare (fd, address, iface, buffer, gro) == 0)
    return fd;
  error = -errno;
  close (fd);
  return error;
}

static in_port_t *
port_of (WeirAddress *address)
{
  return address->any.sa_family == AF_INET6 ? &address->v6.sin6_port : &address->v4.sin_port;
}

static int
bound_port (int fd)
{
  WeirAddress address = { 0 };
  socklen_t len = sizeof address;

  if (getsockname (fd, &address.any, &len) < 0)
    return -errno;
  return ntohs (*port_of (&address));
}

// Opens the pair that a port, which the kernel chose, belongs to.
static int
open_around (
    int port, const WeirAddress *address, unsigned iface, size_t buffer, bool gro, int fds[2])
{
  WeirAddress at = *address;

  port &= ~1;
  *port_of (&at) = htons ((in_port_t) port);
  if ((fds[0] = weir_udp_open (&at, iface, buffer, gro)) < 0)
    return fds[0];
  *port_of (&at) = htons ((in_port_t) (port + 1));
  if ((fds[1] = weir_udp_open (&at, iface, 0, false)) >= 0)
    return port;
  close (fds[0]);
  return fds[1];
}

int
weir_udp_open_pair (const WeirAddress *address, unsigned iface, size_t buffer, bool gro, int fds[2])
{
  int result = -EADDRINUSE;

  for (int i = 0; i < PAIR_TRIES && result == -EADDRINUSE; i++) {
    WeirAddress any = *address;
    int fd;

    *port_of (&any) = 0;
    if ((fd = weir_udp_open (&any, iface, 0, false)) < 0)
      return fd;
    result = bound_port (fd);
    close (fd);
    if (result >= 0)
      result = open_around (result, address, iface, buffer, gro, fds);
  }
  return result;
}

size_t
weir_udp_set_buffer (int fd, size_t bytes)
{
  int size = 0, half = bytes / 2 < INT32_MAX / 2 ? (int) (bytes / 2) : INT32_MAX / 2;
  socklen_t len = sizeof size;

  getsockopt (fd, SOL_SOCKET, SO_RCVBUF, &size, &len);
  if (size > 0 && (size_t) size >= bytes)
    return (size_t) size;
  // The kernel doubles what is set.
  if (setsockopt (fd, SOL_SOCKET, SO_RCVBUFFORCE, &half, sizeof half) < 0)
    setsockopt (fd, SOL_SOCKET, SO_RCVBUF, &half, sizeof half);
  getsockopt (fd, SOL_SOCKET, SO_RCVBUF, &size, &len);
  return size > 0 ? (size_t) size : 0;
}

uint64_t
weir_udp_buffer_for (uint64_t bytes, uint64_t datagrams)
{
  return bytes * 3 / 2 + datagrams * OVERHEAD;
}

uint32_t
weir_udp_drops (int fd)
{
  uint32_t info[SK_MEMINFO_VARS] = { 0 };
  socklen_t len = sizeof info;

  getsockopt (fd, SOL_SOCKET, SO_MEMINFO, info, &len);
  return info[SK_MEMINFO_DROPS];
}

int
weir_udp_send (int fd, const WeirAddress *to, const void *data, size_t len)
{
  WeirAddress address = *to;
  int family = 0;
  socklen_t size = sizeof family;

  if (getsockopt (fd, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && family == AF_INET6
      && address.any.sa_family == AF_INET)
    weir_address_map_to_v6 (&address);
  if (sendto (fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL, &address.any, weir_address_len (&address))
      < 0)
    return -errno;
  return 0;
}

// ---- receiving ----

static const WeirReceiveOps system_ops = { recvmmsg };

int
weir_receiver_init (WeirReceiver *self, const WeirReceiveOps *ops)
{
  *self = (WeirReceiver) { .ops = ops ? ops : &system_ops };
  self->bytes = malloc (WEIR_RECEIVE_MESSAGES * MESSAGE_MAX);
  if (!self->bytes)
    return -ENOMEM;
  for (size_t i = 0; i < WEIR_RECEIVE_MESSAGES; i++) {
    self->messages[i].data = self->bytes + i * MESSAGE_MAX;
    self->iov[i] = (struct iovec) { self->messages[i].data, MESSAGE_MAX };
    self->headers[i].msg_hdr = (struct msghdr) { .msg_name = &self->names[i],
      .msg_iov = &self->iov[i],
      .msg_iovlen = 1,
      .msg_control = self->control[i].bytes };
  }
  return 0;
}

void
weir_receiver_clear (WeirReceiver *self)
{
  free (self->bytes);
  self->bytes = NULL;
}

static void
read_control (WeirMessage *message, struct msghdr *header)
{
  for (struct cmsghdr *c = CMSG_FIRSTHDR (header); c; c = CMSG_NXTHDR (header, c)) {
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS
        && c->cmsg_len >= CMSG_LEN (sizeof (struct timespec))) {
      struct timespec t;

      memcpy (&t, CMSG_DATA (c), sizeof t);
      message->unix_ns = (int64_t) t.tv_sec * 1000000000 + t.tv_nsec;
    } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL
               && c->cmsg_len >= CMSG_LEN (sizeof message->drops)) {
      memcpy (&message->drops, CMSG_DATA (c), sizeof message->drops);
      message->drops_known = true;
    } else if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO
               && c->cmsg_len >= CMSG_LEN (sizeof (int))) {
      int segment;

      memcpy (&segment, CMSG_DATA (c), sizeof segment);
      if (segment > 0)
        message->segment = (size_t) segment;
    }
  }
}

static void
read_message (WeirMessage *message, struct mmsghdr *header)
{
  struct msghdr *msg = &header->msg_hdr;

  message->len = header->msg_len < MESSAGE_MAX ? header->msg_len : MESSAGE_MAX;
  message->segment = message->len;
  message->truncated = msg->msg_flags & MSG_TRUNC;
  message->from_known =
      weir_address_normalise (msg->msg_name, msg->msg_namelen, &message->from) == 0;
  message->unix_ns = 0;
  message->drops_known = false;
  read_control (message, msg);
  if (message->segment > message->len)
    message->segment = message->len;
}

int
weir_receiver_fill (WeirReceiver *self, int fd)
{
  int n;

  for (size_t i = 0; i < WEIR_RECEIVE_MESSAGES; i++) {
    self->headers[i].msg_hdr.msg_namelen = sizeof self->names[i];
    self->headers[i].msg_hdr.msg_controllen = sizeof self->control[i].bytes;
    self->headers[i].msg_hdr.msg_flags = 0;
  }
  n = self->ops->recvmmsg (fd, self->headers, WEIR_RECEIVE_MESSAGES, MSG_DONTWAIT, NULL);
  if (n < 0)
    return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
  for (int i = 0; i < n; i++)
    read_message (&self->messages[i], &self->headers[i]);
  return n;
}

int64_t
weir_message_arrival (const WeirMessage *message, int64_t unix_offset_ns, int64_t now_ns)
{
  int64_t arrival_ns = message->unix_ns - unix_offset_ns;

  return message->unix_ns == 0 || arrival_ns > now_ns || arrival_ns < now_ns - MOST_WAITING_NS
             ? now_ns
             : arrival_ns;
}
