// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the RTCP that the readers of all WEIR_TYPE_RELAY_MEDIA and of all medias with a sender bin
// send, on one thread: takes their reports, and passes their keyframe requests upstream.

#include <gst/rtsp-server/rtsp-server.h>

typedef struct _WeirRelayRtcp WeirRelayRtcp;

// Starts reading for a stream whose sockets are open. `bin` is its weir_relay_bin_new(); NULL
// if keyframe requests are to be dropped. `source` is an appsrc for the RTCP of TCP readers that
// has no task; NULL if there is none. References are taken to all three.
WeirRelayRtcp *weir_relay_rtcp_new (GstRTSPStream *stream, GstElement *bin, GstElement *source);

// Stops reading. Waits for a call of the thread that runs; do not call from one.
void weir_relay_rtcp_free (WeirRelayRtcp *self);
