// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One RTSP connection of a reader: which mount it uses, whether the request may go on to the
// library, and what is logged of it.

#include "mount.h"

typedef Mount *(*ClientFindMountFunc) (const gchar *path, gpointer data);

// Made for a server's create-client. `find` gives a reference to the mount of an exact path, or
// NULL; it is called in the client's thread.
GstRTSPClient *client_new (GstRTSPServer *server, ClientFindMountFunc find, gpointer data);

// Its connection is there: who it is can be told.
void client_connected (GstRTSPClient *client);

// Closes the connection, from whatever thread, if it uses this mount (NULL: whichever). `reason` is
// logged.
void client_close (GstRTSPClient *client, Mount *mount, const gchar *reason);

// How many readers play now.
guint client_n_playing (void);

// Ends the sessions that have timed out. To be called now and then.
void client_cleanup_sessions (GstRTSPClient *client);
