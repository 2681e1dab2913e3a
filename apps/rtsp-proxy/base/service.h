// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What systemd, or another service manager with its protocol, is told: datagrams to the socket
// that NOTIFY_SOCKET names. Without that variable nothing is told. A message that can't be sent
// is a line in the log.
//
// The protocol is one datagram of text and is promised to stay as it is, so it is written here
// and libsystemd is not needed.

#include <glib.h>

// It serves; also after service_tell_reloading().
void service_tell_ready (void);
void service_tell_reloading (void);
void service_tell_stopping (void);

// Tells from the main loop, twice in the time that WATCHDOG_USEC gives, that it still turns. The
// source's id, or 0 where no watchdog is wanted.
guint service_add_watchdog (void);
