// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Corrects the status of responses that gst-rtsp-server makes.

#include <gst/rtsp-server/rtsp-server.h>

// Returns the status for an error of gst-rtsp-server, for adjust_error_code().
GstRTSPStatusCode status_adjust (GstRTSPContext *ctx, GstRTSPStatusCode code);

// Adds headers that the status of a response requires. Call before it is sent.
void status_complete (GstRTSPMessage *response);
