// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtsp-server/rtsp-server.h>

// In a handler of setup-request: what the reader of this transport reports over UDP is read here
// from now on, and not by the library.
void weir_reports_watch (GstRTSPContext *ctx);
