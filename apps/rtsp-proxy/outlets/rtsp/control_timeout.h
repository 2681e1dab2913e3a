// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtsp-server/rtsp-server.h>

// Has gst-rtsp-server not close the client 60 s after it has connected. The library does so unless
// it has handled a SETUP itself (rtsp-client.c, rtsp_ctrl_timeout), which it does not for a
// publisher. Call from a callback of the client's context.
void control_timeout_remove (GstRTSPClient *client);
