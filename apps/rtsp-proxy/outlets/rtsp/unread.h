// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtsp-server/rtsp-server.h>

// Closes the connection if the client does not play, and has not read its responses for too long.
// Call every few seconds, from one thread.
void unread_check (GstRTSPClient *client);
