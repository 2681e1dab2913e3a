// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A reader over HLS: what the API and the metrics show of one player, from its master playlist
// until it has asked for nothing for a while. Reference-counted. Call from any thread.

#include <gio/gio.h>

#include "outlets/hls/hls_stream.h"
#include "outlets/hls/hls_target.h"

#define HLS_RENDITIONS_MAX 8

typedef struct _HlsSession HlsSession;

// `mount` is the path on which it has a place, and `peer` the address and port of its first
// request. Takes ownership of references to `streams`.
HlsSession *hls_session_new (const gchar *mount, GInetAddress *address, const gchar *peer,
    HlsStream *const *streams, guint n_streams);
HlsSession *hls_session_ref (HlsSession *self);
void hls_session_unref (HlsSession *self);

// Ends it: it leaves the readers.
void hls_session_end (HlsSession *self);

const gchar *hls_session_get_id (HlsSession *self);       // secret
GInetAddress *hls_session_get_address (HlsSession *self); // (transfer none)
const gchar *hls_session_get_mount (HlsSession *self);
guint hls_session_n_streams (HlsSession *self);
HlsStream *hls_session_get_stream (HlsSession *self, guint i); // (transfer none)

// Notes a request, and bytes that were sent.
void hls_session_use (HlsSession *self);
void hls_session_add_bytes (HlsSession *self, gsize n);

// Reports whether it is over: closed by the API, or unused for so long that its player has left.
gboolean hls_session_is_over (HlsSession *self);

// Returns its master playlist if at least one of its streams is ready, else NULL. (transfer full)
GBytes *hls_session_write_master (HlsSession *self, HlsKind kind);
