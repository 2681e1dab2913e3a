// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One RTSP connection of a reader: what it asks for, whether the request may go on to the
// library, and what is logged of it.

#include "content/presentation.h"
#include "content/titles.h"
#include "readers/readers.h"
#include "text/demand.h"

// Called in the client's thread.
typedef struct {
  // What is asked for, with a reference and a use; NULL and an error if it is nothing that is
  // served, G_IO_ERROR_BUSY if it is too much.
  Presentation *(*find) (const Demand *demand, gpointer data, GError **error);
  // The path under which the library knows what is asked for, with the track.
  gchar *(*path) (const Demand *demand, gpointer data);
  // For a title: a reference to those of its mount, and its name; else NULL.
  Titles *(*titles) (const Demand *demand, gpointer data, gchar **name);
} ClientFuncs;

// Made for a server's create-client. `funcs` is kept.
GstRTSPClient *client_new (GstRTSPServer *server, const ClientFuncs *funcs, gpointer data);

// Its connection is there: who it is can be told.
void client_connected (GstRTSPClient *client);

// Closes the connection, from whatever thread, if it uses this presentation, or a title of its
// mount (NULL: whichever).
// `reason` is logged.
void client_close (GstRTSPClient *client, Presentation *presentation, const gchar *reason);

// A reference to who plays on this connection, or NULL. Any thread.
Reader *client_dup_reader (GstRTSPClient *client);

// How many readers play now.
guint client_n_playing (void);

// Ends the sessions that have timed out. To be called now and then.
void client_cleanup_sessions (GstRTSPClient *client);
