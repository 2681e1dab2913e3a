// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Opens UDP sockets that receiver.h reads, and pairs of them: RTP on an even port, RTCP on the
// next.

#include <glib.h>
#include <sys/socket.h>

typedef struct {
  gint next, hi; // next port to try, last port of the range; 0: the kernel chooses
} Ports;

void ports_init (Ports *self, gint lo, gint hi);

// Opens a pair on the address of `local`, with a receive buffer of `buffer` bytes for each socket.
// Returns the RTP port, or a negative errno; -ENOSPC if no pair is left.
gint ports_open (Ports *self, const struct sockaddr_storage *local, int buffer, int fds[2]);

// Has the kernel note arrival times and drops, and return datagrams of one size as one buffer.
// `buffer`: bytes that wait to be read.
void ports_set_up (int fd, int buffer);
