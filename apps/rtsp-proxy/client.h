// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One RTSP connection of a reader: what it asks for, whether the request may go on to the
// library, and what is logged of it.

#include "presentation.h"
#include "readers.h"

// What a URL asks for, with a reference and a use; NULL and an error if it is nothing that is
// served, G_IO_ERROR_BUSY if it is too much. Called in the client's thread.
typedef Presentation *(*ClientFindFunc) (const GstRTSPUrl *url, gpointer data, GError **error);

// The path under which the library knows what a URL asks for, with the track. Called in the
// client's thread.
typedef gchar *(*ClientPathFunc) (const GstRTSPUrl *url, gpointer data);

// Made for a server's create-client.
GstRTSPClient *client_new (
    GstRTSPServer *server, ClientFindFunc find, ClientPathFunc path, gpointer data);

// The path under which the library knows what the URL asks for on this connection, with the track:
// a session of a title is found again by the URL that began it. In the client's thread.
gchar *client_dup_path (GstRTSPClient *client, const GstRTSPUrl *url);

// Its connection is there: who it is can be told.
void client_connected (GstRTSPClient *client);

// Closes the connection, from whatever thread, if it uses this presentation (NULL: whichever).
// `reason` is logged.
void client_close (GstRTSPClient *client, Presentation *presentation, const gchar *reason);

// A reference to who plays on this connection, or NULL. Any thread.
Reader *client_dup_reader (GstRTSPClient *client);

// How many readers play now.
guint client_n_playing (void);

// Ends the sessions that have timed out. To be called now and then.
void client_cleanup_sessions (GstRTSPClient *client);
