// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The UDP ports to which media of readers goes. A reader cannot name the ports of another reader
// with the same address, such as a neighbour behind the same NAT. Call from any thread.

#include <glib.h>

typedef struct _TransportPorts TransportPorts;

// Takes two ports, which may be equal, of a host for `owner`, which is only compared. Returns NULL
// if another owner has one of them.
TransportPorts *transport_ports_take (const gchar *host, guint rtp, guint rtcp, gpointer owner);

// Gives the ports back. Does nothing if `self` is NULL.
void transport_ports_free (TransportPorts *self);
