// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A reader over HLS: what the API and the metrics show of one player, from its master playlist
// until it has asked for nothing for a while. Reference-counted. Call from any thread.

#include <gio/gio.h>

#include "outlets/hls/hls_group.h"
#include "outlets/hls/hls_target.h"

typedef struct _HlsSession HlsSession;

// `id` is that of a session that its player resumes; NULL: a new one. `target` is the mount's
// target that it was begun with, `mount` the path on which it has a place, and `peer` the address
// and port of its first request. Takes ownership of a reference to `group`.
HlsSession *hls_session_new (const gchar *id, const gchar *target, const gchar *mount,
    GInetAddress *address, const gchar *peer, HlsGroup *group);
HlsSession *hls_session_ref (HlsSession *self);
void hls_session_unref (HlsSession *self);

// Ends it: it leaves the readers.
void hls_session_end (HlsSession *self);

const gchar *hls_session_get_id (HlsSession *self);       // secret
const gchar *hls_session_get_target (HlsSession *self);   // may have a secret
GInetAddress *hls_session_get_address (HlsSession *self); // (transfer none)
const gchar *hls_session_get_mount (HlsSession *self);
HlsGroup *hls_session_get_group (HlsSession *self); // (transfer none)

// Notes that a request has come, and that its answer has ended. In between, however long it waits,
// the session is in use.
void hls_session_enter (HlsSession *self);
void hls_session_leave (HlsSession *self);

// Notes bytes that were sent.
void hls_session_add_bytes (HlsSession *self, gsize n);

// Reports whether it is over: closed by the API, or unused for so long that its player has left.
gboolean hls_session_is_over (HlsSession *self);

gboolean hls_session_is_closed (HlsSession *self);

// Returns its master playlist, or NULL (hls_group_write_master(); transfer full).
GBytes *hls_session_write_master (HlsSession *self, HlsKind kind);
