// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Handshakes under way: how many there may be, in all and of one client, and which one ends when
// there is no room for a new one. The caller serialises the calls.

#include <glib.h>

typedef struct _TlsPending TlsPending;

// Reports whether the client of a handshake has sent nothing yet.
typedef gboolean (*TlsPendingFunc) (gpointer handshake);

// There is room for `most` handshakes, and for `most_of_key` of each client.
TlsPending *tls_pending_new (guint most, guint most_of_key, TlsPendingFunc is_silent);
void tls_pending_free (TlsPending *self);

// Adds a handshake of the client with this key. Without room, another one is removed, to which
// `removed` is set: the oldest whose client has sent nothing, of the same client if that has too
// many; or the oldest of the client with the most, if this one has fewer. Returns FALSE if there is
// none of these, so that the new one is not added.
gboolean tls_pending_add (
    TlsPending *self, const gchar *key, gpointer handshake, gpointer *removed);

// Removes a handshake. Returns FALSE if it is not there (any more).
gboolean tls_pending_remove (TlsPending *self, gpointer handshake);
