// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Corrects the status of responses that gst-rtsp-server makes.

#include <gst/rtsp-server/rtsp-server.h>

// Sets the function of a class that corrects the status of errors.
void status_class_init (GstRTSPClientClass *klass);

// Adds headers that the status of a response requires. Call before it is sent.
void status_complete (GstRTSPMessage *response);
