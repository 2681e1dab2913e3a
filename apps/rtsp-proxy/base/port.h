// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A TCP port. When few files can still be opened (files_left.h), it closes new connections, and the
// log says so; if not even that is possible, they wait. Call from the main thread, which also calls
// the functions.

#include <gio/gio.h>

typedef struct _Port Port;

typedef void (*PortFunc) (GSocket *listening, gpointer data);

// Listens. `address` is an IP address; number 0 is any free port. `waiting` is called when a client
// waits to be accepted, `refused` (or NULL) when one is not, because few files can be opened.
// Returns NULL and sets `error` if the system refuses.
Port *port_new (const gchar *address, guint16 number, PortFunc waiting, PortFunc refused,
    gpointer data, GError **error);

// Does the same with a socket that listens.
Port *port_new_from_socket (GSocket *listening, PortFunc waiting, PortFunc refused, gpointer data);

// Stops accepting. A socket of port_new() is closed, so that nothing that still has it waits for
// its clients; any other one is closed when nobody else has it. The functions are not called any
// more.
void port_free (Port *self);

guint16 port_get_number (Port *self);
