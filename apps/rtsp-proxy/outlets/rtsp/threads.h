// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// gst-rtsp-server's threads, with names.

#include <gst/rtsp-server/rtsp-server.h>

GstRTSPThreadPool *rtsp_threads_new (void);
