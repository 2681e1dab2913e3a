// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The program that relays a stream at the ingress of a network device (relay.bpf.c): one for each
// relay. Needs Linux 6.6 and the capabilities CAP_BPF and CAP_NET_ADMIN.

#include <gio/gio.h>

#include "relaylayout.h"

G_BEGIN_DECLS

typedef struct weir_relay_program WeirRelayProgram;

// Loads the program and attaches it to the network device that has an IPv4 address (in network byte
// order). It relays nothing yet. Returns NULL and an error if that fails.
WeirRelayProgram *weir_relay_program_new (guint32 address, GError **error);

// Detaches the program; so does the end of the process, however it ends.
void weir_relay_program_free (WeirRelayProgram *self);

// Returns the memory that is shared with the program; it is the program's.
struct relay *weir_relay_program_memory (WeirRelayProgram *self);

G_END_DECLS
