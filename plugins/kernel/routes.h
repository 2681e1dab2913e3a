// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The routes of readers that get clones. A thread of the process follows the system's routes,
// neighbours and devices, and attaches the clone program to the devices that can have it. Whatever
// it does not know for sure makes a route unusable, and its reader is served without clones until
// it is known.

#include <gio/gio.h>

#include "core/net/address.h"
#include "core/net/clones.h"
#include "layout.h"

G_BEGIN_DECLS

// Starts the thread. Call it once, after the program was loaded. Returns FALSE and an error if the
// system's routes cannot be read.
gboolean weir_routes_start (GError **error);

// Returns a route for the packets of the UDP socket `fd` to an address; NULL if clones can never
// stand for them: no unicast address of IPv4, or a socket with options that clones do not follow.
// With `force`, devices that do not segment are used, and a limit of the socket's rate is ignored.
// The caller owns the result.
WeirCloneRoute *weir_route_new (int fd, const WeirAddress *address, gboolean force);

// Copies how a route's reader is reached now, with a number of IP to begin with. Returns FALSE if
// clones do not reach it.
gboolean weir_route_read (WeirCloneRoute *route, guint *device, struct clone_reader *reader);

// From now on, writes to an eventfd that does not block when a route of any reader has changed,
// until weir_routes_unwatch(). Call both from any thread.
void weir_routes_watch (int fd);
void weir_routes_unwatch (int fd);

// The operations of these routes.
extern const WeirCloner weir_route_cloner;

G_END_DECLS
