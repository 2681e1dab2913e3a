// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The proxy's side of connect_trap.h: makes the connections of worker processes.

#include <glib.h>
#include <sys/socket.h>

typedef struct _ConnectBroker ConnectBroker;

// `local`: workers may connect to all ports of this machine that are not refused, as peers may be
// there.
ConnectBroker *connect_broker_new (gboolean local);
void connect_broker_unref (ConnectBroker *self);

// From now on, workers may connect to a TCP or UDP port of this machine. Call from any thread.
void connect_broker_allow_port (guint16 port);

// Allows the ports that a URI or a launch line names.
void connect_broker_allow_text (const gchar *text);

// Workers never connect to this port of this machine, whatever was allowed.
void connect_broker_refuse_port (guint16 port);

// Reports whether a worker may connect to an address: to other machines; on this one, to the ports
// that are allowed, or with `local` not refused, the DNS, and what resolves names.
gboolean connect_broker_admits (const struct sockaddr *address, gsize size, gboolean local);

// Takes a message of a worker: the address, and two descriptors, which it takes: the socket, and
// the end of a pair to which the result goes, as a gint. Never waits: a thread makes the
// connection.
void connect_broker_take (
    ConnectBroker *self, gint pid, gconstpointer message, gsize len, const gint *fds, guint n_fds);
