// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The program that clones messages at the egress of network devices (clone.bpf.c): loads it,
// attaches it to devices, and gives it messages. There is one for the process. Needs the
// capabilities CAP_BPF and CAP_NET_ADMIN for loading and attaching, and none to send.

#include <gio/gio.h>

#include "core/net/clones.h"
#include "layout.h"

G_BEGIN_DECLS

// Sets an error for an errno of loading a program: `what` failed, and what would help. Returns
// FALSE.
gboolean weir_program_fail (GError **error, int code, const char *what);

// Loads the program and opens its sockets. Returns FALSE and an error if that fails.
gboolean weir_program_load (GError **error);

// Attaches the program to a device. Returns a descriptor, which detaches it when it is closed, also
// by the end of the process; 0 if the kernel is older than Linux 6.6: then it stays, lets all
// packets pass after the end of the process, and is removed by the next process that attaches one;
// or a negative errno. Call it from one thread.
int weir_program_attach (guint device);

// Sends a message from a slot's socket over `device`, which the program clones to `n` readers, at
// most CLONE_READERS. `fd` is the socket in whose name it is sent. Sets `results` as the program
// does (layout.h). Returns FALSE, with nothing sent, if no slot is free or the message did not
// reach the program. Call it from any thread.
gboolean weir_program_send (const struct msghdr *message, int fd, guint device,
    const struct clone_reader *readers, gsize n, gint32 *results);

G_END_DECLS
