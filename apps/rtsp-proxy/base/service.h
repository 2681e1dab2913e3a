// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Notifies systemd, or another service manager with the same protocol, through the socket that
// NOTIFY_SOCKET names; without that variable, does nothing. A notification that cannot be sent is
// logged.
//
// The protocol is one datagram of text and is declared stable, so libsystemd is not needed.

#include <glib.h>

// Reports that the proxy serves: after its start, and after each service_tell_reloading().
void service_tell_ready (void);

// Reports that a reload begins.
void service_tell_reloading (void);

// Reports that the proxy stops.
void service_tell_stopping (void);

// Reports from the main loop, twice in each WATCHDOG_USEC, that the main loop still runs. Returns
// the id of the GSource, or 0 if the service manager wants no watchdog.
guint service_add_watchdog (void);
