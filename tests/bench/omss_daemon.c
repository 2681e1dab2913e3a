// SPDX-License-Identifier: LGPL-2.1-or-later
#include "omss_daemon.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define ROOM 2048
#define HEAD 2         // RFC 4571, before a packet over TCP
#define SLOTS 4096     // so that no packet is overwritten before it has left
#define COMPLETIONS 16 // packets between two looks at what has left

typedef bool (*Send) (OmssDaemon *self, int reader, size_t len);

struct OmssDaemon {
  Send send;
  int out, *sockets; // `out`: of sendto; the others of each reader
  bool tcp;
  struct sockaddr_in *readers;
  int n;
  uint8_t *slots; // of `memory`, each with a packet behind the room for its head
  int memory;
  unsigned slot;
  int pipe[2], copy[2], nowhere;
  uint64_t copied;
};

static off_t
start_of (const OmssDaemon *self)
{
  return (off_t) self->slot * (ROOM + HEAD) + (self->tcp ? 0 : HEAD);
}

// What a reader gets: over TCP with the head.
static size_t
whole (const OmssDaemon *self, size_t len)
{
  return self->tcp ? len + HEAD : len;
}

static bool
send_to (OmssDaemon *self, int reader, size_t len)
{
  return sendto (self->out, self->slots + start_of (self), len, 0,
             (const struct sockaddr *) &self->readers[reader], sizeof *self->readers)
         == (ssize_t) len;
}

static bool
send_framed (OmssDaemon *self, int reader, size_t len)
{
  const struct iovec parts[] = { { self->slots + start_of (self), HEAD },
    { self->slots + start_of (self) + HEAD, len } };

  return writev (self->sockets[reader], parts, 2) == (ssize_t) len + HEAD;
}

static bool
send_connected (OmssDaemon *self, int reader, size_t len)
{
  len = whole (self, len);
  return send (self->sockets[reader], self->slots + start_of (self), len, 0) == (ssize_t) len;
}

// ---- zerocopy ----

static void
take_completions (OmssDaemon *self, int reader)
{
  char control[128];
  struct msghdr message = { .msg_control = control, .msg_controllen = sizeof control };

  while (recvmsg (self->sockets[reader], &message, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0) {
    const struct cmsghdr *at = CMSG_FIRSTHDR (&message);
    struct sock_extended_err found;

    if (at) {
      memcpy (&found, CMSG_DATA (at), sizeof found);
      if (found.ee_origin == SO_EE_ORIGIN_ZEROCOPY && found.ee_code & SO_EE_CODE_ZEROCOPY_COPIED)
        self->copied += found.ee_data - found.ee_info + 1;
    }
    message.msg_controllen = sizeof control;
  }
}

static bool
send_zerocopy (OmssDaemon *self, int reader, size_t len)
{
  const uint8_t *from = self->slots + start_of (self);
  ssize_t n;

  len = whole (self, len);
  if (self->slot % COMPLETIONS == 0)
    take_completions (self, reader);
  n = send (self->sockets[reader], from, len, MSG_ZEROCOPY);
  if (n < 0 && errno == ENOBUFS) { // too many completions wait
    take_completions (self, reader);
    n = send (self->sockets[reader], from, len, MSG_ZEROCOPY);
  }
  return n == (ssize_t) len;
}

// ---- splice and sendfile ----

static bool
send_splice (OmssDaemon *self, int reader, size_t len)
{
  len = whole (self, len);
  return tee (self->pipe[0], self->copy[1], len, 0) == (ssize_t) len
         && splice (self->copy[0], NULL, self->sockets[reader], NULL, len, 0) == (ssize_t) len;
}

static bool
send_file (OmssDaemon *self, int reader, size_t len)
{
  off_t from = start_of (self);

  len = whole (self, len);
  return sendfile (self->sockets[reader], self->memory, &from, len) == (ssize_t) len;
}

static void
fill_pipe (OmssDaemon *self, size_t len)
{
  off_t from = start_of (self);

  // A page of the file, so that no copy is made.
  if (splice (self->memory, &from, self->pipe[1], NULL, len, 0) != (ssize_t) len)
    err (1, "splice");
}

static void
empty_pipe (OmssDaemon *self, size_t len)
{
  if (splice (self->pipe[0], NULL, self->nowhere, NULL, len, 0) != (ssize_t) len)
    err (1, "splice");
}

// ---- all ----

static const struct {
  const char *name;
  Send udp, tcp;
} ways[] = {
  { "daemon", send_to, send_framed },
  { "connected", send_connected, send_connected },
  { "zerocopy", send_zerocopy, send_zerocopy },
  { "splice", send_splice, send_splice },
  { "sendfile", send_file, send_file },
};

static int
place_of (const char *way)
{
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    if (strcmp (ways[i].name, way) == 0)
      return (int) i;
  }
  return -1;
}

bool
omss_daemon_knows (const char *way)
{
  return place_of (way) >= 0;
}

static void
connect_all (OmssDaemon *self)
{
  for (int i = 0; i < self->n; i++) {
    self->sockets[i] = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (connect (
            self->sockets[i], (const struct sockaddr *) &self->readers[i], sizeof *self->readers)
        < 0)
      err (1, "connect");
  }
}

OmssDaemon *
omss_daemon_new (
    const char *way, const int *connections, const struct sockaddr_in *first, int readers)
{
  const int place = place_of (way), on = 1;
  OmssDaemon *self = calloc (1, sizeof *self);
  const size_t size = (size_t) SLOTS * (ROOM + HEAD);

  if (!self || !(self->readers = calloc ((size_t) readers, sizeof *self->readers))
      || !(self->sockets = calloc ((size_t) readers, sizeof *self->sockets)))
    err (1, "memory");
  self->n = readers;
  self->tcp = connections != NULL;
  self->send = self->tcp ? ways[place].tcp : ways[place].udp;
  for (int i = 0; i < readers; i++) {
    self->readers[i] = *first;
    self->readers[i].sin_port = htons ((in_port_t) (ntohs (first->sin_port) + i));
  }
  self->out = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (connections)
    memcpy (self->sockets, connections, (size_t) readers * sizeof *connections);
  else if (self->send != send_to)
    connect_all (self);
  for (int i = 0; i < readers && self->send == send_zerocopy; i++) {
    if (setsockopt (self->sockets[i], SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) < 0)
      err (1, "SO_ZEROCOPY");
  }
  self->memory = memfd_create ("packets", MFD_CLOEXEC);
  if (self->memory < 0 || ftruncate (self->memory, (off_t) size) < 0)
    err (1, "a file in memory");
  self->slots = mmap (NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, self->memory, 0);
  if (self->slots == MAP_FAILED || pipe (self->pipe) < 0 || pipe (self->copy) < 0
      || (self->nowhere = open ("/dev/null", O_WRONLY | O_CLOEXEC)) < 0)
    err (1, "a file in memory");
  return self;
}

uint8_t *
omss_daemon_room (OmssDaemon *self)
{
  self->slot = (self->slot + 1) % SLOTS;
  return self->slots + (size_t) self->slot * (ROOM + HEAD) + HEAD;
}

int
omss_daemon_send (OmssDaemon *self, size_t len)
{
  uint8_t *head = self->slots + (size_t) self->slot * (ROOM + HEAD);
  int sent = 0;

  head[0] = (uint8_t) (len >> 8);
  head[1] = (uint8_t) len;
  if (self->send == send_splice)
    fill_pipe (self, whole (self, len));
  for (int i = 0; i < self->n; i++)
    sent += self->send (self, i, len);
  if (self->send == send_splice)
    empty_pipe (self, whole (self, len));
  return sent;
}

uint64_t
omss_daemon_copied (const OmssDaemon *self)
{
  return self->copied;
}
