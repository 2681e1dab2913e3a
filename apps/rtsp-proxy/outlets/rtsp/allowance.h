// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Refuses requests of a client for which there is no room: no memory, or no place for another
// reader on the mount.

#include "outlets/rtsp/asker.h"

// Watches the requests of a client. Call before the program's other handlers are connected. `asker`
// must live as long as the client.
void allowance_watch (GstRTSPClient *client, Asker *asker);

// Returns an error status for a DESCRIBE or SETUP if memory is short, else OK. Call in the client's
// thread, before gst-rtsp-server handles the request.
GstRTSPStatusCode allowance_check (Asker *asker, GstRTSPContext *ctx);

// Reports whether a session of the client has a place, and so plays or has played. Call from any
// thread.
gboolean allowance_is_playing (GstRTSPClient *client);
