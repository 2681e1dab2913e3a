// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Ends the session of a reader over UDP if no datagram has come from its ports 5 s after its PLAY:
// they may be those of a neighbour with the same address, who did not ask for media.

#include <gst/rtsp-server/rtsp-server.h>

// Called in the client's thread for a reader that is silent.
typedef void (*SilenceFunc) (GstRTSPClient *client, const gchar *reason);

// Call in a handler of play-request.
void silence_watch (GstRTSPClient *client, GstRTSPContext *ctx, SilenceFunc silent);

// Returns the number of silent readers so far. Call from any thread.
guint64 silence_count (void);
