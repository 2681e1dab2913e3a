// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A thread pool of gst-rtsp-server that gives its threads names, runs the connections of clients on
// a few threads (client_loops.h), and makes none for the media that clients ask for.

#include <gst/rtsp-server/rtsp-server.h>

GstRTSPThreadPool *rtsp_threads_new (void);
