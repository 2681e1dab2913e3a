// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads datagrams in batches, with the kernel's arrival time of each. The process has one receiver.

#include <glib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>

#define RECEIVER_BATCH 16
#define RECEIVER_BUFFER 65536

typedef struct {
  gint64 clock_offset; // real time minus monotonic time, in ns
  struct mmsghdr msgs[RECEIVER_BATCH];
  struct iovec iov[RECEIVER_BATCH];
  union {
    struct cmsghdr align;
    guint8 bytes[CMSG_SPACE (sizeof (struct timespec)) + CMSG_SPACE (sizeof (int))
                 + CMSG_SPACE (sizeof (guint32))];
  } control[RECEIVER_BATCH];
  guint8 data[RECEIVER_BATCH][RECEIVER_BUFFER];
} Receiver;

typedef void (*ReceiverFunc) (gpointer user, const guint8 *data, gsize len, gint64 arrival_ns);

Receiver *receiver_new (void);
void receiver_free (Receiver *self);

// Measures the offset between the kernel's timestamps and monotonic time; call it regularly.
// Returns the monotonic time in ns.
gint64 receiver_sync (Receiver *self);

// Reads one batch and calls `func` for each datagram. Sets `drops` to the number of datagrams that
// the socket buffer had no room for since the socket was opened, if the kernel reports it. Returns
// the number of messages read, or a negative errno.
int receiver_read (Receiver *self, int fd, guint32 *drops, ReceiverFunc func, gpointer user);

// Reads from a connection as recv() does. Sets `arrival_ns` to the kernel's arrival time.
gssize receiver_read_stream (Receiver *self, int fd, guint8 *room, gsize size, gint64 *arrival_ns);
