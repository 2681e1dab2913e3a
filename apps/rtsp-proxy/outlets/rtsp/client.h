// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One RTSP connection of a reader: what it asks for, whether the request may go on to the
// library, and what is logged of it.

#include <gst/rtsp-server/rtsp-server.h>

#include "mounts/mounts.h"

// Made for a server's create-client. `all` outlive it.
GstRTSPClient *client_new (GstRTSPServer *server, Mounts *all);

// Its connection is there: who it is can be told.
void client_connected (GstRTSPClient *client);

// Closes the connection, from whatever thread, if it uses this presentation, or a title of its
// mount (NULL: whichever).
// `reason` is logged.
void client_close (GstRTSPClient *client, Presentation *presentation, const gchar *reason);

// Ends the sessions that have timed out. To be called now and then.
void client_cleanup_sessions (GstRTSPClient *client);
