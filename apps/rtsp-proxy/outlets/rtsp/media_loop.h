// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtsp-server/rtsp-server.h>

// Returns what gst-rtsp-server takes for the thread of a media (transfer full). It runs the media's
// sources in a thread of a pool while there is something to do, and costs no thread otherwise. One
// that blocks holds no other media.
GstRTSPThread *media_loop_new (void);
