// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Descriptors that come with a message of a local socket.

#include <glib.h>
#include <sys/socket.h>

#define FDS_MAX 16 // of a message

// Receives a message without waiting, and its descriptors, which the caller owns, in `fds`. Returns
// what recvmsg() returns.
gssize fds_receive (gint socket, gpointer data, gsize size, gint fds[FDS_MAX], guint *n_fds);
