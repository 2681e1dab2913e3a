// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtsp-server/rtsp-server.h>

// Removes the client's sessions that have timed out. Closes the connection if the client does not
// play, and has not read its responses for too long. Call every few seconds, from one thread; most
// calls for a client that plays do nothing.
void client_check (GstRTSPClient *client);
