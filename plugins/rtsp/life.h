// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtsp-server/rtsp-server.h>

// A weak reference to an RTSP session, with which a streaming thread resets the session's timeout.
// A streaming thread must not own the session: releasing the last reference stops the media, which
// waits for that thread.
typedef struct _Life Life;

// Returns the Life of a session. The caller owns the reference.
Life *weir_life_of (GstRTSPSession *session);
void weir_life_unref (Life *self);

// Restarts the session's timeout, if the session still exists. Call from any thread.
void weir_life_touch (Life *self);

// Notes that a datagram came from the ports of the session's reader, or forgets it because the
// ports change. Call from any thread; see weir_session_is_heard().
void weir_life_set_heard (Life *self, gboolean heard);
