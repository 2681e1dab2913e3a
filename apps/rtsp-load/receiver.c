// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "receiver.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

typedef struct {
  gint64 arrival_ns;
  gsize segment; // size of each datagram of a coalesced buffer; 0: the buffer is one datagram
} Notes;

static gint64
clock_ns (clockid_t clock)
{
  struct timespec now;

  clock_gettime (clock, &now);
  return now.tv_sec * INT64_C (1000000000) + now.tv_nsec;
}

Receiver *
receiver_new (void)
{
  Receiver *self = g_new0 (Receiver, 1);

  for (guint i = 0; i < RECEIVER_BATCH; i++) {
    self->iov[i] = (struct iovec) { self->data[i], RECEIVER_BUFFER };
    self->msgs[i].msg_hdr = (struct msghdr) {
      .msg_iov = &self->iov[i],
      .msg_iovlen = 1,
      .msg_control = &self->control[i],
    };
  }
  return self;
}

void
receiver_free (Receiver *self)
{
  g_free (self);
}

gint64
receiver_sync (Receiver *self)
{
  gint64 now = clock_ns (CLOCK_MONOTONIC);

  self->clock_offset = clock_ns (CLOCK_REALTIME) - now;
  return now;
}

static Notes
read_notes (const Receiver *self, struct msghdr *msg, guint32 *drops)
{
  Notes notes = { 0 };

  for (struct cmsghdr *c = CMSG_FIRSTHDR (msg); c; c = CMSG_NXTHDR (msg, c)) {
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
      struct timespec at;

      memcpy (&at, CMSG_DATA (c), sizeof at);
      notes.arrival_ns = at.tv_sec * INT64_C (1000000000) + at.tv_nsec - self->clock_offset;
    } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
      memcpy (drops, CMSG_DATA (c), sizeof *drops);
    } else if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
      int size;

      memcpy (&size, CMSG_DATA (c), sizeof size);
      notes.segment = size > 0 ? (gsize) size : 0;
    }
  }
  if (notes.arrival_ns == 0)
    notes.arrival_ns = clock_ns (CLOCK_MONOTONIC);
  return notes;
}

// Calls `func` for each datagram. With UDP_GRO the kernel returns several datagrams of equal size,
// of which the last may be shorter, as one buffer.
static void
deliver (const guint8 *data, gsize len, const Notes *notes, ReceiverFunc func, gpointer user)
{
  gsize segment = notes->segment ? notes->segment : len;

  while (len > segment) {
    func (user, data, segment, notes->arrival_ns);
    data += segment;
    len -= segment;
  }
  func (user, data, len, notes->arrival_ns);
}

int
receiver_read (Receiver *self, int fd, guint32 *drops, ReceiverFunc func, gpointer user)
{
  int n;

  for (guint i = 0; i < RECEIVER_BATCH; i++)
    self->msgs[i].msg_hdr.msg_controllen = sizeof self->control[i];
  n = recvmmsg (fd, self->msgs, RECEIVER_BATCH, MSG_DONTWAIT, NULL);
  if (n < 0)
    return -errno;
  for (int i = 0; i < n; i++) {
    Notes notes = read_notes (self, &self->msgs[i].msg_hdr, drops);

    deliver (self->data[i], self->msgs[i].msg_len, &notes, func, user);
  }
  return n;
}

gssize
receiver_read_stream (Receiver *self, int fd, guint8 *room, gsize size, gint64 *arrival_ns)
{
  struct iovec iov = { room, size };
  struct msghdr msg = {
    .msg_iov = &iov,
    .msg_iovlen = 1,
    .msg_control = &self->control[0],
    .msg_controllen = sizeof self->control[0],
  };
  guint32 unused;
  gssize n = recvmsg (fd, &msg, MSG_DONTWAIT);

  if (n > 0)
    *arrival_ns = read_notes (self, &msg, &unused).arrival_ns;
  return n;
}
