// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A client whose request was put aside, for those who tell when it can be handled.

#include <gst/rtsp-server/rtsp-server.h>

gpointer resume_new (GstRTSPClient *client);

// Has the request handled, if the client is still there. Frees what resume_new() gave. Any thread.
void resume_told (gpointer resume);
