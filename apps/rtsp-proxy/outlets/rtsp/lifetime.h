// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Says how long a connection lives after its first request, whatever its requests were: as long as
// it has a session, or a request that waits for its answer; then until it has been silent for too
// long since its last answer. Sessions end with TEARDOWN, or when they time out.
//
// gst-rtsp-server has a limit of its own: it closes a connection that has never had a session 60 s
// after its begin.

#include <gst/rtsp-server/rtsp-server.h>

// Returns when the connection ends if nothing happens from `now` on, in µs, monotonic; up to `now`
// if it must end. `silence_ms` is the time after the last answer. Call from the client's thread.
gint64 lifetime_get_end (GstRTSPClient *client, gint64 now, guint silence_ms);
