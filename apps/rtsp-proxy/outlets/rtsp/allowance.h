// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Refuses requests of a client for which there is no room: no memory, or no place for another
// reader on the mount.

#include "outlets/rtsp/rtsp_connection.h"

// Watches the requests of a client. Call before the program's other handlers are connected.
// `connection` must live as long as the client.
void allowance_watch (GstRTSPClient *client, RtspConnection *connection);

// Call when memory is short. Returns the status to answer, or OK if the session, which may be NULL,
// plays already. Call in the client's thread.
GstRTSPStatusCode allowance_check_memory (RtspConnection *connection, GstRTSPSession *session);

// Reports whether there is no room for a new reader of the mount `path`. NULL: it is not made yet.
// `session` may be NULL. Call in the client's thread.
gboolean allowance_is_full (RtspConnection *connection, GstRTSPSession *session, const gchar *path);

// Reports whether a session of the client has a place, and so plays or has played. Call from any
// thread.
gboolean allowance_is_playing (GstRTSPClient *client);
