// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Counts connections, in all and for each address, and bounds them. Call from any thread.

#include <gio/gio.h>

#include "access/refusals.h"
#include "config/limits.h"

// The connections of one listener.
typedef struct _Connections Connections;

Connections *connections_new (void);
Connections *connections_ref (Connections *self);
void connections_unref (Connections *self);

// Counts a connection from `address`. If `limits` do not allow it, returns FALSE and sets `reason`.
// Call connections_leave() with the same address later. Addresses with one key (base/address.h) are
// one address. Loopback addresses have no limit of their own: behind a proxy on the same machine,
// all connections have one.
gboolean connections_enter (
    Connections *self, const Limits *limits, GInetAddress *address, RefusedReason *reason);

// Does the same under the limits in force, and if memory is short, returns FALSE as well. Notes a
// refusal (refusals_note()) of `peer`, or of the address if it is NULL; `kind` says what there are
// too many of, such as "SRT connections". Sets `text` (transfer full), which may be NULL, to the
// reason.
gboolean connections_admit (
    Connections *self, GInetAddress *address, const gchar *kind, const gchar *peer, gchar **text);

void connections_leave (Connections *self, GInetAddress *address);

guint connections_count (Connections *self);
