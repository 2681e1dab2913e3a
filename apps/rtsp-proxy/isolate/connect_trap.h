// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Connections of a process that may not call connect(): the kernel traps the call, and the proxy
// makes the connection with the same socket, if it admits the address. Unlike a filter, the proxy
// sees the address, in memory that the process cannot change afterwards.

#include <glib.h>

// Reports whether this kind of processor is known; else connect() is not trapped.
gboolean connect_trap_is_known (void);

// Handles the signal SIGSYS of connect(). `proxy` is the socket to the proxy, as in
// connect_broker_take().
void connect_trap_set (gint proxy);
