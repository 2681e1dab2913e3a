// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtsp-server/rtsp-server.h>

// A session as seen from a streaming thread: it can be kept alive from there, and neither be used
// when it is gone, nor be held. Who holds a session last ends its media, and a streaming thread
// that did would wait for itself.
typedef struct _Life Life;

// Of this session; the same one for each call. To be given back.
Life *weir_life_of (GstRTSPSession *session);
void weir_life_unref (Life *self);

// The session's time-out begins anew, if there still is a session. Any thread.
void weir_life_touch (Life *self);
