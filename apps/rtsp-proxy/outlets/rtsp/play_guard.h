// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Checks each request before gst-rtsp-server handles it: asks the door, and answers a PLAY for a
// path that is not part of the session. gst-rtsp-server would leak the path of such a
// request, and a client could send any number of them.

#include <gst/rtsp-server/rtsp-server.h>

// Returned by a PlayGuardFunc that has answered the request.
#define PLAY_GUARD_ANSWERED GST_RTSP_STS_INVALID

// Returns OK, PLAY_GUARD_ANSWERED, or the status to answer; then sets `*challenges` to values of
// WWW-Authenticate, or leaves it unchanged. Returns OK for a PLAY only if it has a URL. Called in
// the client's thread.
typedef GstRTSPStatusCode (*PlayGuardFunc) (
    GstRTSPClient *client, GstRTSPContext *ctx, const gchar *const **challenges);

// Returns an object for gst_rtsp_client_set_auth(), which the library asks before each request.
GstRTSPAuth *play_guard_new (PlayGuardFunc check);
