// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A callback and its data that resume a client's request which was put aside.

#include <gst/rtsp-server/rtsp-server.h>

// Returns the data for resume_told(). Keeps a weak reference to `client`.
gpointer resume_new (GstRTSPClient *client);

// Has the request handled again if the client still exists. Frees `resume`. Call from any thread.
void resume_told (gpointer resume);
