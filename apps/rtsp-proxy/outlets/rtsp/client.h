// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One RTSP connection, as a client of gst-rtsp-server: what happens at its requests, and the reader
// that plays, which is logged and counted.

#include <gst/rtsp-server/rtsp-server.h>

#include "access/access.h"
#include "mounts/mounts.h"

// Returns a client for the create_client() function of a server. `all` and `access` must outlive
// it.
GstRTSPClient *client_new (GstRTSPServer *server, Mounts *all, Access *access);

// Reads the peer's address. Call when the client has its connection.
void client_connected (GstRTSPClient *client);

// Returns the mount points of a server, which ask the client for the path of a request.
GstRTSPMountPoints *client_points_new (void);

// Returns when the client got its last answer, in µs, monotonic. Call from any thread.
gint64 client_get_answered (GstRTSPClient *client);

// Returns the peer's address and port.
const gchar *client_get_peer (GstRTSPClient *client);

// Sets the reason that the log gives for the end of a playing session, unless there is one. Call
// from any thread.
void client_set_leave_reason (GstRTSPClient *client, const gchar *reason);

// Closes the connection if it uses `presentation`, or a title of the mount with the presentation's
// path. With NULL, closes it in any case. `reason` is logged. Call from any thread.
void client_close (GstRTSPClient *client, Presentation *presentation, const gchar *reason);

// Removes the sessions that have timed out at `now`, in µs, monotonic. Returns the time until the
// next one can, in ms; G_MAXINT if there is none. Call every few seconds.
gint client_cleanup_sessions (GstRTSPClient *client, gint64 now);
