// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The sessions of WHEP by their names, which are secrets: who knows the URL of a session may change
// and end it. Call from any thread.

#include "access/connections.h"
#include "outlets/webrtc/webrtc_reader.h"

typedef struct _WhepSessions WhepSessions;

// `port` and `loop` are those of the readers.
WhepSessions *whep_sessions_new (WebrtcPort *port, Loop *loop);

// Call after whep_sessions_end() when whep_sessions_count() is 0.
void whep_sessions_free (WhepSessions *self);

// A session as a request sees it.
typedef struct {
  WebrtcReader *reader;
  gchar *name; // 128 random bits, in hexadecimal digits
  gchar *etag; // with its quotation marks
} WhepSession;

void whep_session_clear (WhepSession *session);

// Counts a session of a client in. Returns NULL, or why there are too many (transfer full). Then
// call whep_sessions_add() or whep_sessions_leave().
gchar *whep_sessions_enter (WhepSessions *self, GInetAddress *address, const gchar *peer);
void whep_sessions_leave (WhepSessions *self, GInetAddress *address);

// Makes a reader (webrtc_reader_new()), whose session is counted until it ends. Fills `session`.
// Returns FALSE and sets `error` on failure; the session is counted still.
gboolean whep_sessions_add (WhepSessions *self, const WebrtcReaderParts *parts,
    GInetAddress *address, WhepSession *session, GError **error);

// Finds the session with the first characters of `name`, which may have more behind a "?". Returns
// FALSE if there is none.
gboolean whep_sessions_find (WhepSessions *self, const gchar *name, WhepSession *session);

// Gives the session another ETag.
void whep_sessions_renew (WhepSessions *self, WhepSession *session);

// Ends the readers of a presentation, or all if it is NULL.
void whep_sessions_end (WhepSessions *self, Presentation *presentation, const gchar *reason);

guint whep_sessions_count (WhepSessions *self);
