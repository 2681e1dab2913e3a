// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Resumes a client's request that was put aside.

#include <gst/rtsp-server/rtsp-server.h>

// Returns the argument for resume_run(). Keeps a weak reference to `client`.
gpointer resume_new (GstRTSPClient *client);

// Handles the request again, in the client's thread, if the client still exists. Frees `resume`.
// Call from any thread.
void resume_run (gpointer resume);

// Handles the request again, in the client's thread, after `ms`, if the client still exists. Call
// from the client's thread.
void resume_after (GstRTSPClient *client, guint ms);

// Frees an argument that resume_run() will not get.
void resume_free (gpointer resume);
