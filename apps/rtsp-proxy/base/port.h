// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A TCP port. It accepts no connection when few files can still be opened (files_left.h): it closes
// the connection, and the log says so. Call from the main thread, which also calls `waiting`.

#include <gio/gio.h>

typedef struct _Port Port;

// A client waits to be accepted from `listening`.
typedef void (*PortFunc) (GSocket *listening, gpointer data);

// Listens. `address` is an IP address; number 0 is any free port. Returns NULL and sets `error` if
// the system refuses.
Port *port_new (
    const gchar *address, guint16 number, PortFunc waiting, gpointer data, GError **error);

// Stops listening. `waiting` is not called any more.
void port_free (Port *self);

guint16 port_get_number (Port *self);
