// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads datagrams in batches, each with the time at which the kernel had it. One for the process.

#include <glib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>

#define RECEIVER_BATCH 16
#define RECEIVER_BUFFER 65536

typedef struct {
  gint64 clock_offset; // real time less monotonic time, ns
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

// Sets the two clocks side by side; to be called now and then. Returns monotonic time.
gint64 receiver_sync (Receiver *self);

// Reads one batch. `drops` is set to how many the socket had no room for since it was opened, if
// the kernel tells. Returns how many messages there were, or a negative errno.
int receiver_read (Receiver *self, int fd, guint32 *drops, ReceiverFunc func, gpointer user);

// Reads from a connection as recv() does, and says when the kernel had it.
gssize receiver_read_stream (Receiver *self, int fd, guint8 *room, gsize size, gint64 *arrival_ns);
