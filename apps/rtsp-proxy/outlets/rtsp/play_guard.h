// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Answers a PLAY or RECORD for a path that is not part of the session. gst-rtsp-server would leak
// the path of such a request, and a client could send any number of them.

#include <gst/rtsp-server/rtsp-server.h>

// Returns an object for gst_rtsp_client_set_auth(), which the library asks before each request. It
// allows all other requests.
GstRTSPAuth *play_guard_new (void);
