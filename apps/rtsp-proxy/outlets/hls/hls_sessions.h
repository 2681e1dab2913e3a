// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// All sessions over HLS, and the groups of streams that they use: each is muxed once. Call from any
// thread, unless the function says otherwise.

#include "mounts/mounts.h"
#include "outlets/hls/hls_session.h"
#include "outlets/http/http_route.h"

typedef struct _HlsSessions HlsSessions;

// Main thread only.
HlsSessions *hls_sessions_new (const HlsSettings *settings, Mounts *mounts);
void hls_sessions_free (HlsSessions *self);

// Begins a session of what is asked for, with the layers of the demand, and starts its streams if
// nobody uses them yet. `target` is a master playlist, or a playlist of the session that the player
// resumes. `*is_new` says whether this call has added it. Returns NULL and sets `status` and
// `*text` (transfer full, or NULL) if there is no room, or no such live stream. (transfer full)
HlsSession *hls_sessions_begin (HlsSessions *self, const HttpAsked *asked, const HlsTarget *target,
    gboolean *is_new, guint *status, gchar **text);

// Returns the mount's target of a session that has ended because its player was silent, and that
// the player may resume (transfer full), or NULL.
gchar *hls_sessions_dup_target (HlsSessions *self, const gchar *id);

// Ends a session whose player has got no playlist.
void hls_sessions_drop (HlsSessions *self, HlsSession *session);

// Returns the session, or NULL if there is none or it is over. (transfer full)
HlsSession *hls_sessions_find (HlsSessions *self, const gchar *id);
