// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The library forgets the path of a PLAY or RECORD that its session does not know, and so leaks as
// much as a client likes to send. Such a request is answered before the library sees it.

#include <gst/rtsp-server/rtsp-server.h>

// For gst_rtsp_client_set_auth(), which is asked before each request; it allows all others.
GstRTSPAuth *play_guard_new (void);
