// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "ports.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <unistd.h>

#define TRIES 200

void
ports_init (Ports *self, gint lo, gint hi)
{
  *self = (Ports) { .next = (lo + 1) / 2 * 2, .hi = hi };
}

static in_port_t *
port_of (struct sockaddr_storage *address)
{
  return address->ss_family == AF_INET6 ? &((struct sockaddr_in6 *) address)->sin6_port
                                        : &((struct sockaddr_in *) address)->sin_port;
}

void
ports_set_up (int fd, int buffer)
{
  int on = 1;

  setsockopt (fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
  setsockopt (fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
  setsockopt (fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof on);
  setsockopt (fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on);
}

// Opens a UDP socket on `port`, or on any free port if `port` is 0. Returns the port, or a negative
// errno.
static int
open_one (const struct sockaddr_storage *local, int port, int buffer, int *fd)
{
  struct sockaddr_storage address = *local;
  socklen_t len = sizeof address;
  int saved;

  *fd = socket (local->ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (*fd < 0)
    return -errno;
  *port_of (&address) = htons ((in_port_t) port);
  if (bind (*fd, (struct sockaddr *) &address, sizeof address) == 0
      && getsockname (*fd, (struct sockaddr *) &address, &len) == 0) {
    ports_set_up (*fd, buffer);
    return ntohs (*port_of (&address));
  }
  saved = errno;
  close (*fd);
  return -saved;
}

static int
open_pair (const struct sockaddr_storage *local, int port, int buffer, int fds[2])
{
  int first = open_one (local, port, buffer, &fds[0]), second;

  if (first < 0)
    return first;
  second = open_one (local, first ^ 1, buffer, &fds[1]);
  if (second < 0) {
    close (fds[0]);
    return second;
  }
  if (first & 1) {
    int swap = fds[0];

    fds[0] = fds[1];
    fds[1] = swap;
  }
  return first & ~1;
}

gint
ports_open (Ports *self, const struct sockaddr_storage *local, int buffer, int fds[2])
{
  int port = -EADDRINUSE;

  if (self->hi == 0) {
    for (int i = 0; i < TRIES && port == -EADDRINUSE; i++)
      port = open_pair (local, 0, buffer, fds);
    return port == -EADDRINUSE ? -ENOSPC : port;
  }
  // Skip ports that another program uses.
  while (port == -EADDRINUSE && self->next + 1 <= self->hi) {
    port = open_pair (local, self->next, buffer, fds);
    self->next += 2;
  }
  return port == -EADDRINUSE ? -ENOSPC : port;
}
