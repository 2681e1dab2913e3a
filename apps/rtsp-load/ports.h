// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Pairs of UDP sockets, for RTP on an even port and RTCP on the next.

#include <glib.h>
#include <sys/socket.h>

typedef struct {
  gint next, hi; // 0: the kernel chooses
} Ports;

void ports_init (Ports *self, gint lo, gint hi);

// Opens a pair on the address of `local`. `buffer` is for the receive buffer of RTP, in bytes.
// Returns the RTP port, or a negative errno: -ENOSPC if no pair is left.
gint ports_open (Ports *self, const struct sockaddr_storage *local, int buffer, int fds[2]);
