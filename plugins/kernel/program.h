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

// The readers of a message.
typedef struct {
  gsize n, n_plain; // at most CLONE_READERS; and those, from the first on, without own numbers
  struct clone_reader headers[CLONE_READERS];
  struct clone_numbers numbers[CLONE_READERS]; // from `n_plain` on
  gint32 results[CLONE_READERS];               // see layout.h
} WeirProgramReaders;

// Sends a message from a slot's socket over `device`, which the program clones to the readers, and
// sets their results. `fd` is the socket in whose name it is sent. Returns how many readers, from
// the first on, have results; nothing was sent to the others: no slot is free, the message did not
// reach the program, or there is no memory. Call it from any thread.
gsize weir_program_send (
    const WeirCloneMessage *message, int fd, guint device, WeirProgramReaders *readers);

G_END_DECLS
